"""What is found out about a view: plain facts, for people, programs and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from viewfold._util.file import File
from viewfold._util.records import short_repr


@dataclass(frozen=True)
class ColumnFacts:
    """What would become of a column.

    Attributes
    ----------
    name : str
        Its name, or its number if columns have no names.
    kind : {"number", "boolean", "category", "date", "out"}
        What it is; a boolean has no other values than 0 and 1.
    levels : tuple of str
        Of a category: its levels; of a date: what it gives.
    why : str
        Why it is left out, if nobody asked for that.
    n_missing : int
        How many of its cells are missing.
    """

    name: str
    kind: Literal["number", "boolean", "category", "date", "out"]
    levels: tuple[str, ...] = ()
    why: str = ""
    n_missing: int = 0


@dataclass(frozen=True)
class SampleFacts:
    """How the samples of a view compare with those that a model knows.

    Attributes
    ----------
    n_known, n_new : int
        How many are known, with exactly this id, and how many are not.
    n_similar : int
        How many of the new ones have an id that is almost a known one.
    examples : tuple of (id, known id)
        Some of these.
    n_in_view : int
        How many are in the view of this name already.
    fits : tuple of str
        The known views whose features are those of this one.
    """

    n_known: int
    n_new: int
    n_similar: int = 0
    examples: tuple[tuple[int | str, int | str], ...] = ()
    n_in_view: int = 0
    fits: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Inspection:
    """What would be understood of a view; see `inspect_views`.

    Attributes
    ----------
    name : str
        What the view would be called.
    source : object
        What to fold: X, or a `File` with the options that it needs.
    options : dict
        What else to pass: ``model.partial_fit(found.source, **found.options)``.
    proposed : tuple of str
        Names of the options that nobody gave.
    problems : tuple of str
        What would be refused without these.
    refused : str
        Why it would be refused all the same; empty if it would be folded.
    n_rows : int
        How many rows there are, also of absent samples.
    id_column : str or None
        The column of ids, named or proposed; None if there is none.
    id_candidates : tuple of str
        Columns that look as if they held ids, the likeliest first.
    has_ids : bool
        Whether samples have ids; if not, they are known by their row number.
    columns : tuple of ColumnFacts
        What would become of each column.
    n_missing, n_cells : int
        How many cells are missing, and how many there are.
    n_absent, n_zero, n_empty : int
        Rows without any value, rows of zeros, and how many of these would be left out.
    suspects : dict of float to tuple of str
        Values that may mark missing cells, and the columns that have them.
    written : dict of str to str
        How a text is written: encoding, delimiter, decimal sign.
    scale : str or None
        How the view would be scaled; see `ViewFold`.
    samples : SampleFacts or None
        Who is known, if a model is given that has folded a view.
    notes : tuple of str
        What would be noted.
    """

    __repr__ = short_repr

    name: str
    source: Any
    options: Mapping[str, Any]
    proposed: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    refused: str = ""
    n_rows: int = 0
    id_column: str | None = None
    id_candidates: tuple[str, ...] = ()
    has_ids: bool = False
    columns: tuple[ColumnFacts, ...] = ()
    n_missing: int = 0
    n_cells: int = 0
    n_absent: int = 0
    n_zero: int = 0
    n_empty: int = 0
    suspects: Mapping[float, tuple[str, ...]] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    scale: str | None = None
    samples: SampleFacts | None = None
    notes: tuple[str, ...] = ()

    def of_kind(self, kind: str) -> list[ColumnFacts]:
        """Return the columns of a kind."""
        return [column for column in self.columns if column.kind == kind]

    def worst(self, most: int = 5) -> list[ColumnFacts]:
        """Return the columns with the most missing cells."""
        gaps = [column for column in self.columns if column.n_missing]
        return sorted(gaps, key=lambda column: -column.n_missing)[:most]

    def said(self) -> dict[str, Any]:
        """Return all options: those of the file, and the others."""
        said = self.source.options.given() if isinstance(self.source, File) else {}
        if "sheet" in said:
            said["sheet"] = list(said["sheet"])
        return {**said, **self.options}
