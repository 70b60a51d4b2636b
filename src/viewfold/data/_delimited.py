"""CSV and TSV, plain or compressed, read in blocks with bounded memory.

The first rows tell delimiter, header and decimal sign; from then on every column but the ids is
numbers, so that a cell that is none is an error with its line, and no guess changes half-way. What
was guessed and is not the usual is told.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np

from viewfold._util.file import ReadOptions
from viewfold.data._budget import Budget, Unpacked
from viewfold.data._csv_rows import rows_of
from viewfold.data._layout import (
    LONGEST_LINE,
    CellKind,
    Layout,
    not_a_number,
    unclear,
    unclosed,
    without_mark,
)
from viewfold.data._numerals import AmbiguousError, Numerals, hint, holds_numbers, numerals_of
from viewfold.data._tables import Table, check_names
from viewfold.data.codes import codes_of
from viewfold.data.encoding import encoding_of, not_text
from viewfold.data.source import FileError, reading

_SAMPLE_ROWS, _SAMPLE_CELLS = 100, 500_000
_PER_COLUMN = 1000  # bytes: its name, its type, the cells that are looked at
_BLOCK = 4 * 2**20
_BOOLEAN = frozenset(["true", "True", "TRUE", "false", "False", "FALSE"])


def open_table(file: str, ids: str | None, options: ReadOptions) -> Table:
    """Look at the first rows of a file."""
    with reading(file, "text with one row per sample"):
        layout = _layout(file, ids, options)
    features = tuple(name for name in layout.kinds if name != ids)
    dtype = np.dtype(np.float64)
    named = features if layout.named else None
    _tell(file, layout, options)
    codes = codes_of((name for name in features if layout.kinds[name] == "text"), file, options)
    dropped = tuple(name for name in layout.names if name not in layout.kinds)
    if codes:
        named = features  # features are called like the columns that they come from
    batches = partial(rows_of, file, layout, features, ids, codes)
    return Table(named, dtype, lambda _: batches(), codes, dropped, layout.written)


def _tell(file: str, layout: Layout, options: ReadOptions) -> None:
    """Tell what was guessed, unless it is what most files have."""
    told = []
    if options.encoding is None and not layout.encoding.startswith("utf-8"):
        told.append(f"text in {layout.encoding} (encoding=… if it is in another one)")
    if options.decimal is None and layout.numerals.decimal == ",":
        told.append("commas are decimal signs")
    numbers = [name for name in layout.names if layout.named and holds_numbers([name])]
    if numbers and numbers != [str(i) for i in range(len(numbers))]:
        told.append(f"the first line holds the names of columns, such as {numbers[0]!r}")
    if told:
        warnings.warn(f"{file}: {', and '.join(told)}.", stacklevel=2)


def _layout(file: str, ids: str | None, options: ReadOptions) -> Layout:
    encoding = options.encoding or encoding_of(file)
    with Unpacked(file) as stream:
        raw = io.BufferedReader(stream)
        text = io.TextIOWrapper(raw, encoding=without_mark(encoding), newline="")
        try:
            first, blank = _first_line(file, text)
            delimiter = _delimiter(file, first)
            Budget(file).hold(_PER_COLUMN * first.count(delimiter), "that many columns")
            rows = csv.reader(_lines(first, text), delimiter=delimiter)
            header = [cell.strip().lstrip("\ufeff") for cell in next(rows)]
            skip = rows.line_num
            most = max(1, min(_SAMPLE_ROWS, _SAMPLE_CELLS // len(header)))
            sample = [row for row in islice(rows, most) if row]
        except UnicodeError as error:
            raise not_text(file, encoding, error) from error
        except csv.Error as error:
            raise unclosed(file) from error
    named = _is_header(header, ids, options)
    if named:
        names = header
    else:
        names, sample, skip = [f"column{i}" for i in range(len(header))], [header, *sample], 0
    check_names(file, names, ids)
    line = 1 + blank + skip
    numerals = _numerals(file, names, sample, delimiter, ids, options, line)
    kinds = _kinds(file, names, sample, ids, numerals, line, options)
    # Many rows per block where rows are long: a block costs time for each of its columns.
    block = max(_BLOCK, min(256 * len(first), LONGEST_LINE), 4 * len(first))
    at, empty = blank + skip, options.markers
    return Layout(encoding, delimiter, numerals, tuple(names), named, kinds, at, block, empty)


def _numerals(
    file: str,
    names: list[str],
    sample: list[list[str]],
    delimiter: str,
    ids: str | None,
    options: ReadOptions,
    line: int,
) -> Numerals:
    wanted = set(options.wanted([name for name in names if name != ids], file, FileError))
    skip = {j for j, n in enumerate(names) if n not in wanted or options.is_coded(n)}
    try:
        return numerals_of(sample, delimiter, skip, options)
    except AmbiguousError as error:
        place = f"{file}, line {line + error.row}, column {names[error.column]!r}"
        raise unclear(place, error.cell) from None


def _first_line(file: str, text: io.TextIOWrapper) -> tuple[str, int]:
    """Return the first line that is not blank, and how many blank ones there are before it."""
    blank = 0
    while line := text.readline(LONGEST_LINE):
        if line.strip("\r\n"):
            return line, blank
        blank += 1
    raise FileError(f"{file}: the file is empty. Leave the view out.")


def _lines(first: str, text: io.TextIOWrapper) -> Iterator[str]:
    yield first
    while line := text.readline(LONGEST_LINE):
        yield line


def _delimiter(file: str, line: str) -> str:
    stem = re.sub(r"\.(gz|zst|bz2)$", "", file.lower())
    if stem.endswith((".tsv", ".tab")):
        return "\t"
    bare = re.sub(r'"[^"]*"', "", line)
    for other in "\t;|":  # numbers with decimal commas have more commas than cells
        if other in bare and holds_numbers(bare.strip().split(other)):
            return other
    return max(",\t;|", key=bare.count)


def _is_header(cells: list[str], ids: str | None, options: ReadOptions) -> bool:
    """Whether the first row holds names: some text, or 0, 1, 2, … as pandas counts columns."""
    if ids is not None and ids in cells:
        return True
    rest = cells[1:] if cells[0] == "" else cells
    if rest == [str(i) for i in range(len(rest))] and len(cells) > 2:
        return True
    # Numbers are numbers, however they are written.
    ways = [Numerals("."), Numerals(",")]
    if options.thousands is not None:
        ways.append(numerals_of([], "", (), options))
    empty, fine = options.markers, ("number", "empty")
    return not any(all(_kind(cell, way, empty) in fine for cell in cells) for way in ways)


def _kind(cell: str, numerals: Numerals, empty: frozenset[str]) -> str:
    if cell in empty:
        return "empty"
    if cell in _BOOLEAN:
        return "boolean"
    return "number" if numerals.can_read(cell) else "text"


def _kinds(
    file: str,
    names: list[str],
    sample: list[list[str]],
    ids: str | None,
    numerals: Numerals,
    line: int,
    options: ReadOptions,
) -> dict[str, CellKind]:
    """Return what the cells of each column are that is read."""
    kinds: dict[str, CellKind] = {}
    wanted = set(options.wanted([name for name in names if name != ids], file, FileError))
    for j, name in enumerate(names):
        if name not in wanted and name != ids:
            continue
        cells = [(i, row[j]) for i, row in enumerate(sample) if len(row) > j]
        found = [_kind(cell, numerals, options.markers) for _, cell in cells]
        if name == ids or options.is_coded(name):
            kinds[name] = "text"
        elif "text" not in found:
            only_flags = "boolean" in found and "number" not in found
            kinds[name] = "flag" if only_flags else "number"
        elif "number" not in found and not any(hint(cell) for _, cell in cells):
            kinds[name] = "text"
        else:
            i, cell = cells[found.index("text")]
            raise not_a_number(file, line + i, name, cell, numerals)
    return kinds
