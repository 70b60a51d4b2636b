"""Set suspicious rows of a delivery aside, in a table that can be corrected and added again.

If some rows alone are odd (cells far from what they were, cells that are missing) and the others
pass, these rows are set aside; otherwise it is the whole delivery of that view.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from viewfold._util.types import Array
from viewfold.app import output
from viewfold.data.view import Column
from viewfold.errors import DeliveryWarning

if TYPE_CHECKING:
    from viewfold._util.table import Table
    from viewfold.data import View
    from viewfold.state.deliveries import Comparison
    from viewfold.state.state import ViewRecord

NAMES = ("id", "sample", "sample_id")  # of the column of ids: the first that no other column has
MOST = 0.5  # of a delivery's rows; if more of them are odd, all are


def split(view: View, record: ViewRecord, found: Comparison | None) -> tuple[View | None, View]:
    """Return the rows of a delivery that are not odd, None if all are, and those that are.

    Without anything that was found, all are.
    """
    from viewfold.data.expected import odd_rows
    from viewfold.rows import Rows, engine_of

    engine = engine_of(view.rows)
    ids, cells = engine.collect(view.ids), engine.collect(replace(view.rows, fill=None))
    whole = replace(view, ids=ids, rows=Rows(cells), n_absent=0)
    if found is None or found.whole or record.profile is None:
        return None, whole
    odd = odd_rows(cells, record.profile, found.oddities)
    if not 0 < np.count_nonzero(odd) <= MOST * odd.size:
        return None, whole
    return _keep_rows(whole, ~odd), _keep_rows(whole, odd)


def _keep_rows(view: View, kept: Array) -> View:
    """Return some rows of a view that is in memory."""
    from viewfold.data.view import Gaps
    from viewfold.rows import Rows

    rows = Rows(view.rows.X[np.flatnonzero(kept)])
    gaps = None if view.gaps is None else Gaps.of(rows)
    return replace(view, ids=view.ids[kept], rows=replace(rows, fill=gaps), gaps=gaps)


class Quarantine:
    """The file of ``--quarantine``, and the rows that go there; one file for each view."""

    def __init__(self, file: Path, inputs: tuple[Any, ...]) -> None:
        output.check(file, output.TABLES, inputs)
        self.file, self.inputs = file, inputs
        self.rows: dict[str, View] = {}
        self.why: dict[str, DeliveryWarning] = {}

    def put(self, view: View, why: DeliveryWarning) -> None:
        self.rows[why.view], self.why[why.view] = view, why

    def path(self, name: str) -> Path:
        """Return where the rows of a view go: if there are several, its name is in the file's."""
        if len(self.rows) < 2:
            return self.file
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in name)
        return self.file.with_stem(f"{self.file.stem}-{safe}")

    def write(self, state: Path) -> None:
        """Write the rows; a file that is there may be waiting for somebody, and is not replaced."""
        for name in self.rows:
            if self.path(name).exists():
                raise ValueError(
                    f"{self.path(name)} is there already, and suspicious rows of {name!r} should "
                    "be written to it. Nothing was changed. Look at it, and move it away."
                )
        for name, view in self.rows.items():
            path = self.path(name)
            output.write_table(_table(view), path, self.inputs, private=state, raw=True)


def _table(view: View) -> Table:
    """Return rows as a table like the one that they came from, as far as it was understood."""
    from viewfold._util.table import Table
    from viewfold.rows.linalg import dense

    cells = dense(view.rows.X).astype(np.float64)
    names = view.features or [str(j) for j in range(cells.shape[1])]
    columns = view.columns or tuple(Column(name, "number") for name in names)
    held = {column.name for column in columns}
    made: dict[str, Any] = {next(one for one in NAMES if one not in held): view.ids.tolist()}
    start = 0
    for column in columns:
        width = len(column.features)
        if width:
            made[column.name] = _cells(column, cells[:, start : start + width])
        start += width
    return Table(made)


def _cells(column: Column, features: Array) -> list[Any]:
    """Return the cells of a column from the features that they became; None is missing."""
    there = np.asarray(~np.isnan(features).any(axis=1))
    first = np.where(there, features[:, 0], 0)
    found: list[Any] = first.tolist()
    if column.kind == "date":
        days = np.round((column.first + first) * 86400).astype("datetime64[s]")
        found = [str(day).removesuffix("T00:00:00") for day in days]
    elif column.kind == "category":
        there &= (features != 0).any(axis=1)  # a level that is not known
        found = [column.levels[j] for j in np.nan_to_num(features).argmax(axis=1)]
    return [cell if known else None for cell, known in zip(found, there, strict=True)]
