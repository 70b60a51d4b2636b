"""Files as people and programs leave them, one function each: encodings, sheets, lists, folders."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import scipy.io
from io_files import IDS, X
from scipy import sparse

NAMES = ("Größe", "Eisen", "Zink")
GENES = ("CD3E", "CD8A", "CD4")


def write_text(path: Path, rows: Sequence[str], encoding: str = "utf-8") -> Path:
    """Write lines, in any encoding."""
    path.write_bytes("\n".join([*rows, ""]).encode(encoding))
    return path


def german(decimal: str = ",", thousands: str = "", digits: int = 1) -> list[str]:
    """Return lines as a German Excel saves them."""

    def number(value: float) -> str:
        text = f"{value:,.{digits}f}".replace(",", "T").replace(".", decimal)
        return text.replace("T", thousands)

    rows = [[who, *map(number, row)] for who, row in zip(IDS, 1000 * X, strict=True)]
    return [";".join(row) for row in [["id", *NAMES], *rows]]


def write_workbook(path: Path, **sheets: Sequence[Sequence[Any]]) -> Path:
    """Write sheets, given as rows of cells."""
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    book.save(path)
    return path


def sheet_of(names: Sequence[str] = ("age", "iron", "zinc")) -> list[list[Any]]:
    """Return the usual samples as a sheet."""
    return [["id", *names], *([who, *row] for who, row in zip(IDS, X.tolist(), strict=True))]


def add_to_archive(path: Path, name: str, content: bytes) -> Path:
    """Add a member to a zip archive, which is what a workbook is; or replace one."""
    with zipfile.ZipFile(path) as archive:
        held = {member: archive.read(member) for member in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in {**held, name: content}.items():
            archive.writestr(member, data)
    return path


def write_tenx(
    folder: Path, prefix: str = "", packed: bool = True, types: Sequence[str] = ()
) -> Path:
    """Write a matrix of features × cells with its barcodes and features, as 10x does."""
    folder.mkdir(exist_ok=True)
    kinds = types or ["Gene Expression"] * len(GENES)
    parts = {
        "barcodes.tsv": "\n".join(IDS),
        "features.tsv": "\n".join(
            f"ENSG{j}\t{gene}\t{kind}"
            for j, (gene, kind) in enumerate(zip(GENES, kinds, strict=True))
        ),
    }
    for name, text in parts.items():
        _write(folder / f"{prefix}{name}", (text + "\n").encode(), packed)
    plain = folder / f"{prefix}matrix.mtx"
    scipy.io.mmwrite(plain, sparse.coo_array(X.T))
    if packed:
        _write(plain, plain.read_bytes(), packed)
        plain.unlink()
    return folder


def _write(path: Path, content: bytes, packed: bool) -> None:
    if packed:
        path = path.with_name(path.name + ".gz")
        content = gzip.compress(content)
    path.write_bytes(content)


def with_lists(kind: Any, lists: Any = None) -> pa.Table:
    """Return a table with a column of numbers and one of lists."""
    held = X.tolist() if lists is None else lists
    return pa.table({"id": IDS, "age": np.arange(4.0), "emb": pa.array(held, kind)})


UGLY: dict[str, Callable[[Path], Any]] = {
    "lists.parquet": lambda path: pyarrow.parquet.write_table(
        with_lists(pa.list_(pa.float64())), path
    ),
    "german.csv": lambda path: write_text(path, german(), "utf-16"),
}
if find_spec("openpyxl"):
    UGLY["sheets.xlsx"] = lambda path: write_workbook(path, labs=sheet_of(), scan=sheet_of())
