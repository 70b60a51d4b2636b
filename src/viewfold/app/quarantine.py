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
from viewfold.errors import DeliveryWarning

if TYPE_CHECKING:
    import pandas as pd

    from viewfold.data import View
    from viewfold.data.view import Column
    from viewfold.state.deliveries import Comparison
    from viewfold.state.state import ViewRecord

MOST = 0.5  # of a delivery's rows; if more of them are odd, all are


def split(view: View, record: ViewRecord, found: Comparison) -> tuple[View | None, View]:
    """Return the rows of a delivery that are not odd, None if all are, and those that are."""
    from viewfold.data.expected import odd_rows
    from viewfold.rows import Rows, engine_of

    engine = engine_of(view.rows)
    ids, cells = engine.collect(view.ids), engine.collect(replace(view.rows, fill=None))
    whole = replace(view, ids=ids, rows=Rows(cells), n_absent=0)
    if found.whole or record.profile is None:
        return None, whole
    odd = odd_rows(cells, record.profile, found.oddities)
    if not 0 < np.count_nonzero(odd) <= MOST * odd.size:
        return None, whole
    return _some(whole, ~odd), _some(whole, odd)


def _some(view: View, kept: Array) -> View:
    """Return some rows of a view that is in memory."""
    from viewfold.data.view import Gaps
    from viewfold.rows import Rows

    rows = Rows(view.rows.X[np.flatnonzero(kept)])
    gaps = None if view.gaps is None else Gaps.of(rows)
    return replace(view, ids=view.ids[kept], rows=replace(rows, fill=gaps), gaps=gaps)


class Quarantine:
    """The file of ``--quarantine``, and the rows that go there; one file for each view."""

    def __init__(self, file: Path, inputs: tuple[Any, ...]) -> None:
        self.file, self.inputs = output.check(file, output.TABLES, inputs), inputs
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
            table = output.from_frame(_frame(view))
            output.write_table(table, self.path(name), self.inputs, private=state, raw=True)


def _frame(view: View) -> pd.DataFrame:
    """Return rows as a table like the one that they came from, as far as it was understood."""
    import pandas as pd

    from viewfold.rows.linalg import dense

    cells = dense(view.rows.X).astype(np.float64)
    columns: dict[str, Any] = {"id": view.ids}
    if view.columns is None:
        names = view.features or [str(j) for j in range(cells.shape[1])]
        columns |= dict(zip(names, cells.T, strict=True))
    start = 0
    for column in view.columns or ():
        width = len(column.features)
        if width:
            columns[column.name] = _cells(column, cells[:, start : start + width])
        start += width
    return pd.DataFrame(columns)


def _cells(column: Column, features: Array) -> Any:
    """Return the cells of a column from the features that they became."""
    import pandas as pd

    first = features[:, 0]
    if column.kind == "number":
        return first
    if column.kind == "date":
        return pd.to_datetime(column.first + first, unit="D")
    levels = np.array([*column.levels, None], object)
    known = np.nan_to_num(features).any(axis=1)
    return levels[np.where(known, np.nan_to_num(features).argmax(axis=1), -1)]
