"""Matrix Market (.mtx, plain or compressed): rows are samples, as everywhere else.

Read here and not with scipy.io.mmread, which crashes the interpreter on some damaged files.
"""

from __future__ import annotations

import csv
import io
import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from viewfold._types import Array
from viewfold.io._budget import LONGEST_LINE, Budget, Unpacked
from viewfold.io._source import FileError, FileView, reading
from viewfold.io._sparse import as_csr


def read_views(file: str, ids: str | None) -> dict[str, FileView]:
    """Read the matrix of a file; its rows are known by their number."""
    with reading(file, "a Matrix Market file"), Unpacked(file, LONGEST_LINE) as raw:
        text = io.BufferedReader(raw, 2**20)
        banner = text.readline(1000).decode("ascii").lower().split()
        if len(banner) != 5 or banner[:2] != ["%%matrixmarket", "matrix"]:
            raise FileError(f"{file}: the first line is not that of a Matrix Market matrix.")
        layout, field, symmetry = banner[2:]
        if field not in ("real", "double", "integer", "pattern"):
            raise FileError(f"{file}: holds {field} numbers; expected real ones.")
        size = _size(text)
        if layout == "coordinate":
            return {"": FileView(as_csr(_sparse(file, text, size, field, symmetry), file))}
        if layout != "array" or symmetry != "general":
            raise FileError(f"{file}: cannot read the layout {layout} {symmetry}. Use coordinates.")
        n, d = size
        (values,) = _columns(file, text, [np.float64], n * d)
        return {"": FileView(values.reshape((n, d), order="F"))}


def _size(text: Any) -> list[int]:
    while (line := text.readline(100_000)).startswith(b"%") or line.isspace():
        pass
    return [int(number) for number in line.split()]


def _sparse(file: str, text: Any, size: list[int], field: str, symmetry: str) -> sparse.coo_array:
    n, d, stored = size
    kinds = [np.int64, np.int64] + [np.float64] * (field != "pattern")
    rows, columns, *values = _columns(file, text, kinds, stored)
    inside = (rows > 0) & (rows <= n) & (columns > 0) & (columns <= d)
    if not inside.all():
        raise FileError(f"{file}: an entry lies outside of the {n} × {d} matrix.")
    data = values[0] if values else np.ones(stored)
    half = sparse.coo_array((data, (rows - 1, columns - 1)), shape=(n, d))
    if symmetry == "general":
        return half
    # The file holds one triangle; the other one mirrors it.
    sign = -1 if symmetry == "skew-symmetric" else 1
    return sparse.coo_array(half + sign * sparse.tril(half, -1).T)


def _columns(file: str, text: Any, kinds: list[Any], rows: int) -> list[Array]:
    """Read the numbers of the body; one more column shows that no line has more of them."""
    Budget(file).hold(8 * len(kinds) * rows, f"{rows:,} entries")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.ParserWarning)  # that is what the column is for
        frame = pd.read_csv(
            text,
            sep=r"\s+",
            header=None,
            comment="%",
            quoting=csv.QUOTE_NONE,
            names=range(len(kinds) + 1),
            index_col=False,
            dtype=dict(enumerate([*kinds, np.float64])),
            nrows=rows + 1,
        )
    extra = frame.pop(len(kinds)).notna().any()
    if extra or len(frame) != rows:
        raise FileError(
            f"{file}: {'more than ' * (len(frame) > rows)}{min(len(frame), rows)} entries"
            f"{' that are too long' * bool(extra)} where its size line says {rows}. Is the file "
            "whole?"
        )
    return [frame[column].to_numpy() for column in frame]
