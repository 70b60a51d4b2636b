"""Matrix Market (.mtx, plain or compressed): rows are samples, as everywhere else.

Beside its files of names (barcodes and features, of 10x Genomics and others) a matrix has cells in
columns. Read here and not with scipy.io.mmread, which crashes on some damaged files.
"""

from __future__ import annotations

import csv
import io
import os
import re
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from viewfold._util.types import Array
from viewfold.data._budget import LONGEST_LINE, PACKED, Budget, Unpacked
from viewfold.data._sparse import as_csr
from viewfold.data.fetch import beside
from viewfold.data.source import FileError, FileView, as_object, reading, too_large

_NAMED = re.compile(r"(.*?)matrix\.mtx(\.gz|\.zst|\.bz2)?", re.I)


def read_views(file: str, ids: str | None, options: object) -> dict[str, FileView]:
    """Read a matrix; its rows are known by their number, unless there are barcodes beside it."""
    matrix = _matrix(file)
    barcodes, features = (_beside(file, *kinds) for kinds in (["barcodes"], ["features", "genes"]))
    if barcodes is None and features is None:
        return {"": FileView(matrix)}
    if barcodes is None or features is None:
        gone = "barcodes.tsv" if barcodes is None else "features.tsv (or genes.tsv)"
        raise FileError(f"{file}: there is no {gone} beside it. Is the folder whole?")
    if ids is not None:
        raise FileError(f"{file}: its barcodes are the ids. Leave ids={ids!r} out.")
    return _named(file, matrix, [row[0] for row in _rows(barcodes)], _rows(features))


def _named(
    file: str, matrix: Any, barcodes: list[str], features: list[list[str]]
) -> dict[str, FileView]:
    """Return a view for each type of feature, with its names."""
    if matrix.shape == (len(features), len(barcodes)):
        matrix = matrix.T.tocsr() if sparse.issparse(matrix) else matrix.T
    elif matrix.shape != (len(barcodes), len(features)):
        n, d = matrix.shape
        raise FileError(
            f"{file}: {n:,} × {d:,} numbers, but {len(features):,} features and {len(barcodes):,} "
            "barcodes beside it. Is the folder whole?"
        )
    known, names = as_object(barcodes), _names(features)
    types: dict[str, list[int]] = {}
    for j, row in enumerate(features):
        types.setdefault(row[2] if len(row) > 2 else "", []).append(j)
    views = {}
    for kind, at in types.items():
        chosen = matrix if len(types) == 1 else matrix[:, at]
        views[kind or "matrix"] = FileView(chosen, known, tuple(names[j] for j in at))
    return views


def _names(features: list[list[str]]) -> list[str]:
    """Return what features are called: several with one name are told apart by their ids."""
    names = [row[1] if len(row) > 1 else row[0] for row in features]
    many = Counter(names)
    return [
        name if many[name] == 1 else f"{name} ({row[0]})"
        for name, row in zip(names, features, strict=True)
    ]


def _beside(file: str, *kinds: str) -> str | None:
    """Return the file of names that belongs to a matrix."""
    found = _NAMED.fullmatch(os.path.basename(file))
    if not found:
        return None
    names = (f"{found[1]}{kind}.tsv{packed}" for kind in kinds for packed in ("", *PACKED))
    return next((one for name in names if (one := beside(file, name))), None)


def _rows(file: str) -> list[list[str]]:
    """Return the cells of a file of names; a row has at least one."""
    budget = Budget(file)
    rows = []
    with reading(file, "names in lines"), Unpacked(file, LONGEST_LINE) as raw:
        for number, line in enumerate(io.BufferedReader(raw, 2**20), 1):
            budget.hold(200 + len(line), "its names")
            cells = line.decode("utf-8-sig").rstrip("\r\n").split("\t")
            if not cells[0].strip():
                raise FileError(f"{file}, line {number}: there is no name. Is the file whole?")
            rows.append(cells)
    return rows


def _matrix(file: str) -> Any:
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
            return as_csr(_sparse(file, text, size, field, symmetry), file)
        if layout != "array" or symmetry != "general":
            raise FileError(f"{file}: cannot read the layout {layout} {symmetry}. Use coordinates.")
        n, d = size
        (values,) = _columns(file, text, [np.float64], n * d)
        return values.reshape((n, d), order="F")


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


def _check_numbers(file: str) -> None:
    """Refuse the first entry that is no number, or that float64 cannot hold."""
    with Unpacked(file, LONGEST_LINE) as raw:
        for number, line in enumerate(io.BufferedReader(raw, 2**20), 1):
            for cell in line.partition(b"%")[0].decode("ascii", "replace").split():
                place = f"{file}, line {number}"
                try:
                    value = float(cell)
                except ValueError:
                    raise FileError(
                        f"{place}: {cell[:40]!r} is not a number. Correct it."
                    ) from None
                if np.isinf(value) and "n" not in cell.lower():  # neither inf nor infinity
                    raise too_large(place, cell, "write nan")


def _columns(file: str, text: Any, kinds: list[Any], rows: int) -> list[Array]:
    """Read the numbers of the body; one more column shows that no line has more of them."""
    Budget(file).hold(8 * len(kinds) * rows, f"{rows:,} entries")
    try:
        with warnings.catch_warnings():
            # Too many numbers in a line are seen by the extra column.
            warnings.simplefilter("ignore", pd.errors.ParserWarning)
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
                # As Python reads them. The other parsers of pandas get the last bit of every third
                # number wrong, and crash on large exponents.
                float_precision="round_trip",
            )
    except ValueError:
        _check_numbers(file)
        raise
    if len(frame) and np.isinf(frame.to_numpy()).any():
        _check_numbers(file)
    extra = frame.pop(len(kinds)).notna().any()
    if extra or len(frame) != rows:
        raise FileError(
            f"{file}: {'more than ' * (len(frame) > rows)}{min(len(frame), rows)} entries"
            f"{' that are too long' * bool(extra)} where its size line says {rows}. Is the file "
            "whole?"
        )
    return [frame[column].to_numpy() for column in frame]
