"""What commands read and write besides the state file: views in, tables out."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewfold.app import output as _output
from viewfold.app.output import StrPath
from viewfold.cli.console import print_json, tell

if TYPE_CHECKING:
    import pandas as pd

    from viewfold._util.file import EmptyRows, MissingCells, ReadKeywords
    from viewfold._util.table import Table
    from viewfold._util.types import Ids
    from viewfold.data.files import File


def ids_option(column: str | None, none: bool) -> str | bool | None:
    """Return what is said about ids: their column, that there are none (False), or nothing."""
    if none and column is not None:
        raise ValueError("--id names a column of ids, --no-id says that there is none. Choose one.")
    return False if none else column


def reading_options(
    empty_rows: EmptyRows,
    missing_cells: MissingCells,
    columns: str | None,
    drop: str | None,
    categories: str | None,
    empty_markers: str | None,
    strict: bool,
) -> ReadKeywords:
    """Return what is said about rows and columns of a view, as `as_view` takes it."""
    return {
        "empty_rows": empty_rows,
        "missing_cells": missing_cells,
        "columns": listed(columns),
        "drop": listed(drop) or (),
        "categories": listed(categories) or (),
        "empty_markers": listed(empty_markers),
        "strict": strict,
    }


def listed(text: str | None) -> list[str] | None:
    """Return the names that an option lists: comma-separated, quoted where they hold a comma."""
    return None if text is None else next(csv.reader([text], skipinitialspace=True), [])


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


def check_output(output: Path | None, *inputs: StrPath) -> None:
    """Refuse a place to write to before any work is done."""
    if output is not None:
        _output.check(output, _output.TABLES, inputs)


def ids_of(table: Table) -> Ids:
    """Return the ids in a table: numbers, texts or both."""
    ids: Ids = table["id"]
    if "id_is_int" in table.column_names:
        mixed = zip(ids.tolist(), table["id_is_int"].tolist(), strict=True)
        ids[:] = [int(i) if number else i for i, number in mixed]
    return ids


def as_table(frame: pd.DataFrame) -> Table:
    """Return a frame with ids that are numbers, texts or both as other tables have them."""
    from viewfold._util.table import Table

    plain = frame.reset_index().astype({"confidence": "float32"})  # as `labels` has it
    if plain["id"].dtype == object:
        plain.insert(1, "id_is_int", [isinstance(i, int) for i in plain["id"]])
        plain["id"] = plain["id"].astype(str)
    return Table({str(name): _column(plain[name]) for name in plain})


def _column(held: pd.Series[Any]) -> Any:
    """Return a column of a frame as tables have it; None where a cell is missing."""
    found = held.to_numpy()
    if found.dtype.kind in "biuf":
        return found
    return held.astype(object).where(held.notna(), None).to_numpy()


def deliver(
    table: Table,
    output: Path | None,
    as_json: bool,
    state: Path,
    *inputs: StrPath,
    raw: bool = False,
) -> None:
    """Write a table to a file, or to standard output as CSV or JSON."""
    if output is not None:
        _output.write_table(table, output, [state, *inputs], private=state, raw=raw)
        tell(
            as_json,
            {"file": str(output), "samples": len(table)},
            f"{output} is written: {len(table):,} rows.",
        )
    elif as_json:
        names = _output.names(table)
        print_json([dict(zip(names, row, strict=True)) for row in _output.rows(table)])
    else:
        _output.print_table(table, raw=raw)
