"""Which view is meant: one rule and one message for files, models, state files and commands.

Nothing is imported but the standard library, so that every command can ask.
"""

from __future__ import annotations

from collections.abc import Sequence

from viewfold._util.arguments import is_whole_number


def which_view(names: Sequence[str], wanted: str | int | None, holder: str) -> int:
    """Return which of several views is meant: by name, by number, or because it is the only one.

    Parameters
    ----------
    names : sequence of str
        The views there are.
    wanted : str, int or None
        Name or number of the view that is asked for.
    holder : str
        What an error says before the names: ``"the model has folded"``, for instance.

    Returns
    -------
    int
        Its place among the names.

    Examples
    --------
    >>> from viewfold._util.choice import which_view
    >>> names = ["labs", "scan"]
    >>> [which_view(names, asked, "the model has folded") for asked in ("scan", 0, -1)]
    [1, 0, 1]
    """
    if wanted is None and len(names) > 1:
        raise ValueError(
            f"Which view is meant? Pass view=, one of {list(names)}"
            f" (name= to as_view): {holder} {len(names)} views."
        )
    place = 0 if wanted is None else wanted
    if isinstance(wanted, str) and wanted in names:
        place = list(names).index(wanted)
    if not is_whole_number(place) or not -len(names) <= place < len(names):
        raise ValueError(f"There is no view {wanted!r}; {holder} {list(names)}.")
    return int(place) % len(names)
