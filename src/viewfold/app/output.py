"""Where results are written: beside the file that they replace, and renamed when they are complete.

An error leaves what was there before, and nothing else. Nothing is ever written over a state file
or a file that was read. Only the standard library is imported before a table is written.
"""

from __future__ import annotations

import csv
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from glob import glob
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from viewfold._util import replace
from viewfold._util.messages import needed, no_formula, visible, visible_json

if TYPE_CHECKING:
    import pandas as pd

    from viewfold._util.table import Table

StrPath = str | os.PathLike[str]

# The endings of files that tables and reports can be written to.
TABLES = (".csv", ".tsv", ".parquet", ".jsonl", ".arrow", ".xlsx")
PAGES = (".html", ".htm")

# Which packages of which extras write which files.
_NEEDED = (("openpyxl", "excel", (".xlsx",)), ("pyarrow", "parquet", (".parquet", ".arrow")))


def check(path: StrPath, endings: Sequence[str], inputs: Iterable[StrPath] = ()) -> Path:
    """Return the file that a path leads to, if it can be written; call it before any work is done.

    None of the files in `inputs`, which may be folders and patterns, may be replaced.
    """
    shown, target = Path(path), Path(os.path.realpath(path))
    if shown.suffix.lower() not in endings:
        raise ValueError(
            f"Cannot write {shown}: its name should end with one of {', '.join(endings)}."
        )
    for package, extra, kinds in _NEEDED:
        if shown.suffix.lower() in kinds:
            needed(package, extra, f"{shown}: writing it")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}. Make it first.")
    if _is_state(target):
        raise ValueError(f"{shown} is a state file, or the lock of one. Choose another name.")
    if not target.exists():
        return target
    if not target.is_file():
        raise ValueError(f"{shown} is not a file that can be replaced. Choose another name.")
    for read in inputs:
        for file in _files(read):
            if os.path.samefile(file, target):
                raise ValueError(f"{shown} is an input ({file}). Choose another name.")
    return target


def _is_state(path: Path) -> bool:
    """Tell whether a path belongs to a state or its lock, whatever a state file is named."""
    if path.name.lower().endswith((".vf", ".vf.lock", ".vf.wal", ".vfd", ".vfd.lock")):
        return True
    if any(parent.name.lower().endswith(".vfd") for parent in path.parents):
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(12)[8:] == b"DUCK"


def _files(path: StrPath) -> list[str]:
    name = os.fspath(path)
    if os.path.isdir(name):
        return [os.path.join(folder, file) for folder, _, here in os.walk(name) for file in here]
    return [name] if os.path.exists(name) else [file for file in glob(name) if os.path.exists(file)]


@contextmanager
def replacing(
    path: StrPath,
    endings: Sequence[str],
    inputs: Iterable[StrPath] = (),
    private: StrPath | None = None,
) -> Iterator[Path]:
    """Yield a file beside the one to be written; it takes its place if the block succeeds.

    A new file has the same permissions as the file `private`; without one, those that the system
    gives by default. A file that is replaced keeps its own.
    """
    elsewhere = private is not None and "://" in os.fspath(private)  # nobody here may read it
    mode = replace.PRIVATE if elsewhere else None
    with replace.replacing(check(path, endings, inputs), like=private, mode=mode) as draft:
        yield draft


# -- tables


def from_frame(frame: pd.DataFrame) -> Table:
    """Return clusters by id as a table; ids are numbers, texts or both, as in other tables."""
    from viewfold._util.table import Table

    plain = frame.reset_index().astype({"confidence": "float32"})  # as `labels` has it
    if plain["id"].dtype == object:
        plain.insert(1, "id_is_int", [isinstance(i, int) for i in plain["id"]])
        plain["id"] = plain["id"].astype(str)
    return Table({str(name): _column(plain[name]) for name in plain})


def _column(held: pd.Series[Any]) -> Any:
    found = held.to_numpy()
    if found.dtype.kind in "biuf" and not held.isna().any():
        return found
    return held.astype(object).where(held.notna(), None).to_numpy()


def ids_of(table: Table) -> Any:
    """Return the ids in a table: numbers, texts or both."""
    ids = table["id"]
    if "id_is_int" in table.column_names:
        mixed = zip(ids.tolist(), table["id_is_int"].tolist(), strict=True)
        ids[:] = [int(i) if number else i for i, number in mixed]
    return ids


def write_table(
    table: Table,
    path: StrPath,
    inputs: Iterable[StrPath] = (),
    private: StrPath | None = None,
    *,
    raw: bool = False,
) -> None:
    """Write a table in the format that the file's name tells.

    In CSV and TSV, text that a spreadsheet would run begins with an apostrophe, unless `raw`; the
    other formats know texts from formulas.
    """
    ending = Path(path).suffix.lower()
    with replacing(path, TABLES, inputs, private) as draft:
        if ending in (".csv", ".tsv"):
            with draft.open("w", encoding="utf-8", newline="") as file:
                print_table(table, file, "," if ending == ".csv" else "\t", raw=raw)
        elif ending == ".jsonl":
            columns = names(table)
            with draft.open("w", encoding="utf-8") as file:
                for row in rows(table):
                    facts = dict(zip(columns, row, strict=True))
                    file.write(json.dumps(facts, default=str, ensure_ascii=False) + "\n")
        elif ending == ".xlsx":
            _write_excel(table, draft)
        else:
            made = table.select(names(table)).to_arrow()
            import pyarrow as pa
            from pyarrow import parquet

            if ending == ".parquet":
                parquet.write_table(made, draft)
                return
            with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, made.schema) as writer:
                writer.write_table(made)


def rows(table: Table) -> Iterator[tuple[Any, ...]]:
    """Yield the rows, as Python has them; ids that are numbers are numbers."""
    from viewfold._util.table import as_list

    for start in range(0, len(table), 2**16):
        some = table.part(start, start + 2**16)
        columns = {name: as_list(column) for name, column in some.columns.items()}
        if "id_is_int" in columns:
            marks = columns.pop("id_is_int")
            pairs = zip(columns["id"], marks, strict=True)
            columns["id"] = [int(i) if number else i for i, number in pairs]
        yield from zip(*columns.values(), strict=True)


def names(table: Table) -> list[str]:
    return [name for name in table.column_names if name != "id_is_int"]


def print_table(table: Table, file: TextIO, delimiter: str = ",", *, raw: bool) -> None:
    """Write a table as CSV; see `write_table`. Terminals get visible text."""
    shown, n_formulas = file.isatty(), 0

    def cell(value: Any) -> Any:
        nonlocal n_formulas
        if not isinstance(value, str):
            return value
        text = value if raw else no_formula(value)
        n_formulas += text is not value
        return visible(text) if shown else text

    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    for row in chain([names(table)], rows(table)):
        writer.writerow(list(map(cell, row)))
    if n_formulas:
        warnings.warn(
            f"{n_formulas:,} cells would be run as formulas by a spreadsheet, and begin with an "
            f"apostrophe. raw=True leaves them as they are.",
            stacklevel=2,
        )


def _write_excel(table: Table, path: Path) -> None:
    most_rows, most_columns = 1_048_575, 16_384  # below the names
    if len(table) > most_rows or len(names(table)) > most_columns:
        raise ValueError(
            f"{len(table):,} rows × {len(names(table)):,} columns are more than an Excel sheet has "
            f"({most_rows:,} × {most_columns:,}). Write a .csv or .parquet file."
        )
    book = needed("openpyxl", "excel", f"{path}: writing it").Workbook(write_only=True)
    sheet = book.create_sheet("viewfold")
    try:
        for values in chain([names(table)], rows(table)):
            sheet.append([_excel_cell(sheet, value) for value in values])
    finally:
        sheet.close()
    book.save(path)


def _excel_cell(sheet: Any, value: Any) -> Any:
    """Return what a cell holds; a text is a text, also if it looks like a formula."""
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < 2**53:  # others would be rounded
        return value
    if value != value:
        return None
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    # openpyxl would cut off what is too long.
    if len(text) > 32_767 or ILLEGAL_CHARACTERS_RE.search(text):
        raise ValueError(f"{text[:40]!r} does not fit a cell of Excel. Write a .csv file.")
    cell = WriteOnlyCell(sheet, text)
    cell.data_type = "s"
    return cell


def as_json(facts: Any) -> str:
    """Return facts as JSON: what commands print with ``--json``, and what the page gets."""
    return visible_json(json.dumps(facts, default=_plain, ensure_ascii=False))


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value.item()
