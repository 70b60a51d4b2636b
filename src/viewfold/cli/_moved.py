"""How many samples moved, and whether that is too many for a job that nobody watches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from viewfold import errors
from viewfold.cli.console import note

if TYPE_CHECKING:
    import pandas as pd

    from viewfold.estimators import FoldingEstimator


def share(text: str, name: str) -> float:
    """Return a number of samples, or a part of them for a percentage or a fraction.

    Examples
    --------
    >>> from viewfold.cli._moved import share
    >>> share("100", "--min-shared"), share("5%", "--max-moved"), share("0.05", "--max-moved")
    (100, 0.05, 0.05)
    """
    number = text.strip().removesuffix("%")
    percent = number != text.strip()
    try:
        found = float(number) / (100 if percent else 1)
    except ValueError:
        found = -1.0
    whole = number.isdecimal() and not percent
    if not (0 <= found <= 1 or whole):
        raise ValueError(f"{name} {text!r} is no number. Give one such as 100, or 50%.")
    return int(number) if whole else found


class Limit:
    """The option --max-moved: how many of the samples that were known may have moved.

    Parameters
    ----------
    said : str or None
        What the option says.
    """

    def __init__(self, said: str | None) -> None:
        self.said = said
        self.most = None if said is None else share(said, "--max-moved")
        self.before: pd.Series | None = None
        self.moved = self.known = 0

    def begin(self, model: FoldingEstimator) -> None:
        """Remember where samples are before a change."""
        if self.most is not None and hasattr(model, "labels_"):
            self.before = self._clusters(model)

    def facts(self, model: FoldingEstimator) -> dict[str, Any]:
        """Return how many are elsewhere after it, if somebody wants to know."""
        if self.most is None:
            return {}
        if self.before is not None:
            now = self._clusters(model).reindex(self.before.index)
            self.moved, self.known = int((now != self.before).sum()), len(self.before)
        return {"moved": self.moved, "known_before": self.known, "too_many_moved": self.exceeded}

    @property
    def exceeded(self) -> bool:
        """Whether more moved than should."""
        if self.most is None:
            return False
        return self.moved > (self.most if isinstance(self.most, int) else self.most * self.known)

    def end(self) -> None:
        """End the command, with an exit code of its own if more moved than should."""
        if self.exceeded:
            note(
                f"{self.moved:,} of {self.known:,} samples have another cluster, more than "
                f"--max-moved {self.said}."
            )
            raise click.exceptions.Exit(errors.MOVED[1])

    @staticmethod
    def _clusters(model: FoldingEstimator) -> pd.Series:
        import pandas as pd

        return pd.Series(model.labels_, pd.Index(model.ids_))
