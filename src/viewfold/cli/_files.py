"""What commands read and write besides the state file: views in, tables out."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from viewfold import _output
from viewfold._choice import which_view
from viewfold._console import print_json, tell
from viewfold._output import StrPath

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from viewfold._types import Ids
    from viewfold.cli._options import Empty, Gaps
    from viewfold.estimators import FoldingEstimator
    from viewfold.io import File
    from viewfold.view import Reading, View


def ids_option(column: str | None, none: bool) -> str | bool | None:
    """Return what is said about ids: their column, that there are none (False), or nothing."""
    if none and column is not None:
        raise ValueError("--id names a column of ids, --no-id says that there is none. Choose one.")
    return False if none else column


def reading_options(
    empty_rows: Empty,
    missing_cells: Gaps,
    columns: str | None,
    drop: str | None,
    categories: str | None,
    empty_markers: str | None,
    strict: bool,
) -> Reading:
    """Return what is said about rows and columns of a view, as `as_view` takes it."""
    return {
        "empty_rows": empty_rows.value,
        "missing_cells": missing_cells.value,
        "columns": _names(columns),
        "drop": _names(drop) or (),
        "categories": _names(categories) or (),
        "empty_markers": _names(empty_markers),
        "strict": strict,
    }


def _names(text: str | None) -> list[str] | None:
    """Return the names that an option lists: comma-separated, quoted where they hold a comma."""
    return None if text is None else next(csv.reader([text], skipinitialspace=True), [])


SEVERAL = (".npz", ".mat", ".h5mu", ".xlsx")
"""Files that may hold several views."""


def read_views(
    state: Path, file: File, ids: str | bool | None, name: str | None, reading: Reading
) -> list[View]:
    """Return the views of a file; one of them, if a name is given.

    What the state knows of views is looked up only if the file may hold one that is known.
    """
    from viewfold.core.updates import no_encoder
    from viewfold.estimators.delivery import views_of
    from viewfold.io import name_of
    from viewfold.store import queries

    names = queries.names(state) if is_there(state) else []
    several = name is None and str(file).lower().endswith(SEVERAL)
    known = names and (several or (name or name_of(file)) in names)
    model = load_model(state) if known else None
    if model is not None and not several and not model.keep_encoders:
        raise no_encoder(name or name_of(file))
    records = () if model is None else model.views_
    return views_of(records, file, ids=ids, name=name, me=str(state), **reading)


def files_of_views(
    files: Sequence[File], names: Sequence[str]
) -> tuple[File | list[File] | dict[str, File], str | None]:
    """Return rows of known views as `predict_frame` takes them, and which view one file holds."""
    if len(files) == 1 and len(names) < 2:
        return files[0], names[0] if names else None
    if not names:
        return list(files), None
    if len(set(names)) < len(names):
        raise ValueError("--view names a view twice. Give each view once.")
    if len(files) == 1:
        return dict.fromkeys(names, files[0]), None
    if len(files) != len(names):
        raise ValueError(
            f"There are {len(files)} files and {len(names)} times --view. Give it once for each "
            "file, in the same order, or call files like their views."
        )
    return dict(zip(names, files, strict=True)), None


def known_view(model: FoldingEstimator, view: str | None, file: File) -> str:
    """Return the name of the view that rows belong to: the one that is called like their file."""
    if not hasattr(model, "labels_"):
        raise ValueError("No view was folded yet: nothing is known about any.")
    from viewfold.io import name_of

    names = [record.name for record in model.views_]
    view = name_of(file) if view is None and name_of(file) in names else view
    return names[which_view(names, view, "the state holds")]


def is_there(state: Path) -> bool:
    """Tell whether there is such a state."""
    from viewfold.store._kinds import store_of

    return store_of(state).exists(state)


def load_model(state: Path) -> FoldingEstimator:
    from viewfold.store import load

    return load(state)


def check_output(output: Path | None, *inputs: StrPath) -> None:
    """Refuse a place to write to before any work is done."""
    if output is not None:
        _output.check(output, _output.TABLES, inputs)


def folded_table(state: Path, table: pa.Table | None) -> pa.Table:
    if table is None:
        raise ValueError(f"{state} is empty: no view was folded yet. Add one with viewfold add.")
    return table


def ids_of(table: pa.Table) -> Ids:
    """Return the ids in a table: numbers, texts or both."""
    ids: Ids = table["id"].to_numpy()
    if "id_is_int" in table.column_names:
        mixed = zip(ids.tolist(), table["id_is_int"].to_pylist(), strict=True)
        ids[:] = [int(i) if number else i for i, number in mixed]
    return ids


def as_table(frame: pd.DataFrame) -> pa.Table:
    """Return a frame with ids that are numbers, texts or both as other tables have them."""
    import pyarrow as pa

    plain = frame.reset_index().astype({"confidence": "float32"})  # as `labels` has it
    if plain["id"].dtype == object:
        plain.insert(1, "id_is_int", [isinstance(i, int) for i in plain["id"]])
        plain["id"] = plain["id"].astype(str)
    return pa.Table.from_pandas(plain, preserve_index=False)


def without_doubtful(table: pa.Table, least: float | None) -> pa.Table:
    """Return a table with -1 for clusters of samples that are less certain than asked for."""
    if least is None:
        return table
    import pyarrow as pa
    import pyarrow.compute as pc

    from viewfold.clustering import sure_enough

    at, old = table.column_names.index("cluster"), table["cluster"]
    labels = sure_enough(old.to_numpy(), table["confidence"].to_numpy(), least)
    table = table.set_column(at, "cluster", pa.array(labels, old.type))
    if "name" in table.column_names:  # of a cluster that they are not in any more
        names = pc.if_else(pa.array(labels >= 0), table["name"], None)
        table = table.set_column(table.column_names.index("name"), "name", names)
    return table


def deliver(
    table: pa.Table, output: Path | None, as_json: bool, state: Path, *inputs: StrPath
) -> None:
    """Write a table to a file, or to standard output as CSV or JSON."""
    if output is not None:
        _output.write_table(table, output, [state, *inputs], private=state)
        tell(
            as_json,
            {"file": str(output), "samples": len(table)},
            f"{output} is written: {len(table):,} rows.",
        )
    elif as_json:
        names = _output.names(table)
        print_json([dict(zip(names, row, strict=True)) for row in _output.rows(table)])
    else:
        _output.print_table(table)
