"""The rows of a delimited text, in blocks: read by Arrow where it is installed, else by Python.

Arrow reads numbers several times as fast. Python's reader needs nothing else, and reads numbers
that Arrow cannot: with thousands separated, or with a sign that may be either.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from viewfold._util.types import Array
from viewfold.data._budget import Unpacked
from viewfold.data._layout import LONGEST_LINE, Layout, not_a_number, unclosed, without_mark
from viewfold.data._numerals import NotANumberError
from viewfold.data._tables import check_present, ids_of_text
from viewfold.data.codes import Cells, Codes
from viewfold.data.encoding import not_text
from viewfold.data.source import Batch, FileError, reading, too_large

Block: TypeAlias = tuple[list[str | None], Array]  # ids as they are written, and rows

_BLOCK_CELLS = 2**18  # of Python's reader: some 20 MB
_FLAGS = dict.fromkeys(["1", "true", "True", "TRUE"], 1.0)
_FLAGS |= dict.fromkeys(["0", "false", "False", "FALSE"], 0.0)
_OF_NUMBERS = "0123456789+-eE \t" + "nanifty" + "NANIFTY"  # infinity is one, too


def rows_of(
    file: str,
    layout: Layout,
    features: tuple[str, ...],
    ids: str | None,
    codes: dict[str, Codes],
) -> Iterator[Batch]:
    """Yield ids and rows, block by block."""
    row, arrow = 0, _arrow() if layout.numerals.usual else None
    looked = False
    with reading(file, "text with one row per sample"), Unpacked(file) as stream:
        try:
            for texts, rows in (
                _plain_blocks(stream, file, layout, features, ids, codes)
                if arrow is None
                else _arrow_blocks(arrow, stream, file, layout, features, ids, codes)
            ):
                # Both readers turn 1e999 to infinity, which only the text tells from "inf".
                if not looked and np.isinf(rows).any():
                    _check_not_too_large(file, layout, features)
                    looked = True
                known = None
                if ids is not None:
                    check_present(file, texts, row, partial(_line_of, file, layout))
                    known = ids_of_text([text or "" for text in texts])
                row += len(rows)
                yield known, rows
        except UnicodeError as error:
            raise not_text(file, layout.encoding, error) from error
        except csv.Error as error:
            raise unclosed(file) from error


def _check_not_too_large(file: str, layout: Layout, features: tuple[str, ...]) -> None:
    """Refuse the first number of a file that float64 cannot hold."""
    taken = {name for name in features if layout.kinds[name] == "number"}
    at = [j for j, name in enumerate(layout.names) if name in taken]
    with Unpacked(file) as stream:
        for lines, rows in _cells(stream, file, layout):
            for line, cells in zip(lines, rows, strict=True):
                for j in at:
                    if layout.numerals.is_too_large(cells[j], layout.empty):
                        place = f"{file}, line {line}, column {layout.names[j]!r}"
                        raise too_large(place, cells[j].strip())


def _line_of(file: str, layout: Layout, row: int) -> str:
    """Return the line in which a row begins: rows may have several lines, or blank ones between."""
    with Unpacked(file) as stream:
        encoding = without_mark(layout.encoding)
        text = io.TextIOWrapper(io.BufferedReader(stream), encoding=encoding, newline="")
        for _ in range(layout.skip):
            text.readline(LONGEST_LINE)
        rows = csv.reader(text, delimiter=layout.delimiter)
        begin = 0
        for cells in rows:
            if cells or len(layout.names) == 1:
                if row == 0:
                    break
                row -= 1
            begin = rows.line_num
    return f"line {layout.skip + begin + 1}"


# -- by Python


def _plain_blocks(
    stream: Any,
    file: str,
    layout: Layout,
    features: tuple[str, ...],
    ids: str | None,
    codes: dict[str, Codes],
) -> Iterator[Block]:
    place = {name: j for j, name in enumerate(layout.names)}
    for lines, cells in _cells(stream, file, layout):
        columns = list(zip(*cells, strict=True))
        matrix = np.empty((len(lines), len(features)))
        for at, name in enumerate(features):
            column = columns[place[name]]
            if layout.kinds[name] == "text":
                matrix[:, at] = codes[name](Cells.of(column))
                continue
            try:
                matrix[:, at] = (
                    _flags(column, layout)
                    if layout.kinds[name] == "flag"
                    else (_numbers(column, layout))
                )
            except NotANumberError as error:
                line, cell = lines[error.row], error.cell
                raise not_a_number(file, line, name, cell, layout.numerals) from None
        yield [] if ids is None else list(columns[place[ids]]), matrix


def _cells(stream: Any, file: str, layout: Layout) -> Iterator[tuple[list[int], list[list[str]]]]:
    """Yield rows of cells, with the lines in which they begin."""
    encoding, width = without_mark(layout.encoding), len(layout.names)
    text = io.TextIOWrapper(io.BufferedReader(stream), encoding=encoding, newline="")
    for _ in range(layout.skip):
        text.readline(LONGEST_LINE)
    reader = csv.reader(_lines(text), delimiter=layout.delimiter, strict=True)
    most, begin = max(64, _BLOCK_CELLS // width), layout.skip + 1
    lines, rows = list[int](), list[list[str]]()
    for cells in reader:
        line, begin = begin, layout.skip + reader.line_num + 1
        if not cells:
            if width > 1:
                continue
            cells = [""]  # where a row is a single cell, an empty line is an empty cell
        if len(cells) != width:
            raise FileError(
                f"{file}, line {line}: {len(cells)} cells where the first line has {width}. Look "
                f"for a missing or extra {layout.delimiter!r} or quote there."
            )
        lines.append(line)
        rows.append(cells)
        if len(rows) == most:
            yield lines, rows
            lines, rows = [], []
    if rows:
        yield lines, rows


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    while line := text.readline(LONGEST_LINE):
        yield line


def _numbers(cells: Sequence[str], layout: Layout) -> Array:
    """Return cells as numbers: all at once if nothing about them is strange."""
    numerals = layout.numerals
    if numerals.usual:
        held = ["nan" if cell in layout.empty else cell for cell in cells]
        strange = "".join(held).translate(_nothing(numerals.decimal))
        if not strange:
            if numerals.decimal == ",":
                held = [cell.replace(",", ".") for cell in held]
            try:
                return np.array(held, dtype=np.float64)
            except ValueError:
                pass
    return numerals.numbers(cells, layout.empty)


def _nothing(decimal: str) -> dict[int, None]:
    return dict.fromkeys(map(ord, _OF_NUMBERS + decimal))


def _flags(cells: Sequence[str], layout: Layout) -> list[float]:
    found = [np.nan if cell in layout.empty else _FLAGS.get(cell) for cell in cells]
    if None in found:
        at = found.index(None)
        raise NotANumberError(at, cells[at])
    return [flag for flag in found if flag is not None]


# -- by Arrow


def _arrow() -> Any:
    """Return Arrow's reader; None if it is not installed."""
    try:
        import pyarrow.csv
    except ImportError:
        return None
    return pyarrow


def _arrow_blocks(
    arrow: Any,
    stream: Any,
    file: str,
    layout: Layout,
    features: tuple[str, ...],
    ids: str | None,
    codes: dict[str, Codes],
) -> Iterator[Block]:
    from viewfold.data._arrow_tables import arrow_batch

    row, kind = 0, np.dtype(np.float64)
    try:
        for batch in _reader(arrow, stream, layout):
            _, rows = arrow_batch(file, batch, features, kind, None, row, codes)
            row += batch.num_rows
            at = -1 if ids is None else batch.schema.get_field_index(ids)
            yield [] if ids is None else batch.column(at).to_pylist(), rows
    except arrow.ArrowInvalid as error:
        raise _explained(file, layout, str(error)) from error


def _reader(arrow: Any, stream: Any, layout: Layout) -> Any:
    types = {"number": arrow.float64(), "flag": arrow.bool_(), "text": arrow.string()}
    # One thread, because only then are errors told with their line.
    return arrow.csv.open_csv(
        stream,
        arrow.csv.ReadOptions(
            use_threads=False,
            block_size=layout.block,
            skip_rows=layout.skip,
            column_names=list(layout.names),
            encoding=_for_arrow(layout.encoding),
        ),
        arrow.csv.ParseOptions(
            delimiter=layout.delimiter,
            newlines_in_values=True,
            # Where a row is a single cell, an empty line is an empty cell.
            ignore_empty_lines=len(layout.names) > 1,
        ),
        arrow.csv.ConvertOptions(
            column_types={name: types[kind] for name, kind in layout.kinds.items()},
            include_columns=list(layout.kinds),
            null_values=sorted(layout.empty),
            decimal_point=layout.numerals.decimal,
        ),
    )


def _for_arrow(encoding: str) -> str:
    """Return the encoding as Arrow calls it: UTF-8 is read as it is, a mark at its start too."""
    return "utf8" if without_mark(encoding) == "utf-8-sig" else encoding


def _explained(file: str, layout: Layout, said: str) -> FileError:
    """Say what pyarrow says in the words of the file's owner."""
    cell = re.search(r"column #(\d+): (?:Row #(\d+): )?.*invalid value '(.*)'", said, re.DOTALL)
    if cell:
        name, numerals = layout.names[int(cell[1])], layout.numerals
        return not_a_number(file, cell[2] or "?", name, cell[3], numerals)
    row = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", said)
    if row:
        return FileError(
            f"{file}, line {row[1]}: {row[3]} cells where the first line has {row[2]}. Look for a "
            f"missing or extra {layout.delimiter!r} or quote there."
        )
    if "straddl" in said:
        return unclosed(file)
    line = re.search(r"Row #(\d+)", said)
    where = f", line {line[1]}" if line else ""
    name = "UTF-8" if layout.encoding.startswith("utf-8") else layout.encoding
    return FileError(
        f"{file}{where}: {said.splitlines()[0][:200]}. Is it text in {name}? Otherwise say "
        f"encoding=…."
    )
