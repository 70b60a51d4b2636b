"""Tables as text: CSV and TSV, plain or compressed, and JSON lines, in blocks of rows.

The first rows of a CSV tell encoding, delimiter, header and decimal sign; from then on every column
but the ids is numbers, so that a cell that is none is an error with its line, and no guess changes
half-way. What was guessed and is not the usual is told.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, islice
from math import isinf
from typing import Any

import numpy as np

from viewfold._util.file import ReadOptions
from viewfold.data.arrays import Batches
from viewfold.data.cleaning import FEWEST_COLUMNS, SAMPLE_ROWS, is_remark
from viewfold.data.codes import Cells, Codes, codes_of
from viewfold.data.guard import LONGEST_LINE, Budget, Unpacked
from viewfold.data.numbers import holds_numbers, unclosed
from viewfold.data.source import (
    Batch,
    FileError,
    Table,
    as_object,
    batch_rows,
    check_names,
    check_numbers,
    id_of_cell,
    ids_of_text,
    reading,
    too_large,
    without,
)
from viewfold.data.tables import LOOKED_AT, Blocks, Layout, find_layout, open_table

_WHAT = "text with one row per sample"
_SAMPLE = 4 * 2**20  # bytes that tell the encoding
_SAMPLE_CELLS = 500_000  # that tell the rest
_PER_COLUMN = 1000  # bytes: its name, its type, the cells that are looked at
_LONGEST_ROW = 64 * 2**20  # bytes of a line of CSV
_BLOCK_CELLS, _BLOCK_TEXT = 2**18, 2**24  # some 20 MB: cells, and characters of long cells
_PIECE = 2**18  # bytes that are decoded at once
_LONGEST_CELL = csv.field_size_limit()
_LINE_END = re.compile(r"\r\n|\r|\n")
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f"))


def encoding_of(file: str) -> str:
    """Return the encoding of a file's first bytes; refuse what is no text."""
    with io.BufferedReader(Unpacked(file), _SAMPLE) as stream:
        return _encoding(file, stream.peek(_SAMPLE))


def _encoding(file: str, first: bytes) -> str:
    """Tell UTF-8 from everything else; what is not UTF-8 is taken for Windows' Western one."""
    for mark, name in _MARKS.items():
        if first.startswith(mark):
            return name
    even, odd = first[:1000:2], first[1:1000:2]
    for name, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if len(zeros) > 1 and zeros.count(0) > 0.7 * len(zeros) and not others.count(0):
            return name
    try:
        codecs.getincrementaldecoder("utf-8")().decode(first)  # the last letter may be cut
        return "utf-8-sig"
    except UnicodeDecodeError as error:
        try:
            first.decode("cp1252")
        except UnicodeDecodeError:
            raise _not_text(file, "utf-8", error) from error
        if first.translate(None, _CONTROLS) != first:
            raise _not_text(file, "utf-8", error) from error
        return "cp1252"


def _not_text(file: str, encoding: str, error: UnicodeError) -> FileError:
    name = "UTF-8" if encoding.startswith("utf-8") else encoding
    return FileError(
        f"{file}: not text in {name} ({getattr(error, 'reason', error)}). Say how it is encoded, "
        f"for instance encoding='cp1252', or rename it if it is of another format."
    )


# -- CSV and TSV


class _Lines:
    """The lines of a text. Those that were looked at first are kept, so that it is read once."""

    def __init__(self, file: str, encoding: str | None) -> None:
        stream = io.BufferedReader(Unpacked(file, _LONGEST_ROW), _SAMPLE)
        self.file = file
        self.encoding = encoding or _encoding(file, stream.peek(_SAMPLE))
        plain = re.sub(r"[-_]", "", self.encoding.lower()) == "utf8"
        # A mark with which a text may begin is no part of it.
        name = "utf-8-sig" if plain else self.encoding
        self.text = io.TextIOWrapper(stream, encoding=name, newline="")
        self.text._CHUNK_SIZE = _PIECE  # type: ignore[attr-defined]  # 8 KB would be unpacked at once
        self.looked_at: list[str] = []
        self.n_blank = 0  # lines before the first one that is not blank
        for line in self.text:
            if line.strip("\r\n"):
                self.looked_at.append(line)
                return
            self.n_blank += 1
        raise FileError(f"{file}: the file is empty. Leave the view out.")

    def peek(self) -> list[str]:
        """Return the first lines, which tell the delimiter."""
        size = len(self.looked_at[0])
        while len(self.looked_at) < LOOKED_AT and size < _SAMPLE and (line := next(self.text, "")):
            self.looked_at.append(line)
            size += len(line)
        return self.looked_at

    def look(self) -> Iterator[str]:
        """Yield lines from the first on, to be read again."""
        yield from list(self.looked_at)
        for line in self.text:
            self.looked_at.append(line)
            yield line

    def after(self, skip: int) -> Iterator[str]:
        """Return all lines after so many, once."""
        return chain(self.looked_at[skip:], self.text)


def open_delimited(file: str, ids: str | None, options: ReadOptions) -> Table:
    """Look at the first rows of a file."""
    with reading(file, _WHAT):
        lines = _Lines(file, options.encoding)
        with _explained(lines):
            delimiter = _delimiter(file, lines.peek())
            most_delimiters = max(line.count(delimiter) for line in lines.looked_at)
            Budget(file).hold(_PER_COLUMN * most_delimiters, "that many columns")
            reader = csv.reader(lines.look(), delimiter=delimiter)
            most = max(3, min(SAMPLE_ROWS, _SAMPLE_CELLS // (most_delimiters + 1)))
            ends, rows = [0], list[tuple[int, list[str]]]()
            for row in islice(reader, most):
                rows.append((lines.n_blank + ends[-1] + 1, row))
                ends.append(reader.line_num)
        rows[0][1][0] = rows[0][1][0].lstrip("\ufeff")
        whole = len(rows) < most
        layout = find_layout(file, "line", rows, ids, options, whole=whole, delimiter=delimiter)
    encoding = lines.encoding
    plain = "utf-8" if encoding.startswith("utf-8") else encoding
    written = {"encoding": plain, "delimiter": delimiter, "decimal": layout.numerals.decimal}
    written |= {"thousands": sign} if (sign := layout.numerals.thousands) else {}
    _tell(layout, encoding)
    table = open_table(layout, _blocks(layout, lines, delimiter, ends[layout.top]), file)
    return replace(table, written=written)


def _tell(layout: Layout, encoding: str) -> None:
    """Tell what was guessed, unless it is what most files have."""
    told, options = [], layout.options
    if options.encoding is None and not encoding.startswith("utf-8"):
        told.append(f"text in {encoding} (encoding=… if it is in another one)")
    if options.decimal is None and layout.numerals.decimal == ",":
        told.append("commas are decimal signs")
    if options.thousands is None and layout.numerals.thousands:
        told.append(f"{layout.numerals.thousands!r} separates thousands")
    numbers = [name for name in layout.names if layout.named and holds_numbers([name])]
    if numbers and numbers != [str(i) for i in range(len(numbers))]:
        told.append(f"the first line holds the names of columns, such as {numbers[0]!r}")
    if told:
        warnings.warn(f"{layout.place}: {', and '.join(told)}.", stacklevel=2)


@contextmanager
def _explained(lines: _Lines) -> Iterator[None]:
    try:
        yield
    except UnicodeError as error:
        raise _not_text(lines.file, lines.encoding, error) from error
    except csv.Error as error:
        raise unclosed(lines.file) from error


def _delimiter(file: str, lines: Sequence[str]) -> str:
    stem = re.sub(r"\.(gz|zst|bz2)$", "", file.lower())
    if stem.endswith((".tsv", ".tab")):
        return "\t"
    found = _delimiter_of_line(lines[0])
    if len({line.count(found) for line in lines}) == 1 or len(lines) < 3:
        return found
    # The first line may be a title: most lines have as many delimiters as the table has.
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines]
    common = {one: Counter(line.count(one) for line in bare).most_common(1)[0] for one in ",\t;|"}
    best = max(common, key=lambda one: (common[one][1] if common[one][0] else 0, one == found))
    return found if common[found][0] and common[found][1] >= common[best][1] else best


def _delimiter_of_line(line: str) -> str:
    bare = re.sub(r'"[^"]*"', "", line)
    for other in "\t;|":  # numbers with decimal commas have more commas than cells
        if other in bare and holds_numbers(bare.strip().split(other)):
            return other
    return max(",\t;|", key=bare.count)


def _blocks(layout: Layout, lines: _Lines, delimiter: str, skip: int) -> Blocks:
    """Yield the lines in which rows begin, and their cells."""
    file, width = lines.file, len(layout.names)
    longest = max(map(len, lines.looked_at))  # the others may well be like these
    most = max(64, min(_BLOCK_CELLS // width, _BLOCK_TEXT // longest))
    source, line = lines.after(skip), lines.n_blank + skip + 1
    with reading(file, _WHAT), lines.text, _explained(lines):
        while some := list(islice(source, most)):
            text = "".join(some)
            plain = width > 1 and '"' not in text and len(max(some, key=len)) < _LONGEST_CELL
            if not plain or {one.count(delimiter) for one in some} != {width - 1}:
                reader = csv.reader(chain(some, source), delimiter=delimiter, strict=True)
                yield from _parsed_blocks(layout, reader, most, line)
                return
            # Nothing is quoted, and every line is a row: this takes half the time of csv.
            ends = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
            cells = ends.replace("\n", delimiter).split(delimiter)
            yield range(line, line + len(some)), as_object(cells).reshape(-1, width)
            line += len(some)


def _parsed_blocks(layout: Layout, reader: Any, most: int, line: int) -> Blocks:
    # Not pandas: it fills rows that are too short, and does not say in which line a cell is.
    width, begin = len(layout.names), line
    while rows := list(islice(reader, most)):
        end = begin + reader.line_num
        lines = list(range(line, end))
        if len(lines) > len(rows):  # cells go over several lines
            heights = [1 + sum(len(_LINE_END.findall(cell)) for cell in row) for row in rows]
            lines = list(accumulate(heights[:-1], initial=line))
        line = end
        if set(map(len, rows)) != {width}:
            if width == 1:  # where a row is a single cell, an empty line is an empty cell
                rows = [row or [""] for row in rows]
            lines = [at for at, row in zip(lines, rows, strict=True) if row]
            rows = [row for row in rows if row]
            wrong = next((i for i, row in enumerate(rows) if len(row) != width), None)
            below = rows[wrong:] if wrong and len(rows) < most else []
            if (
                below
                and not layout.options.as_is
                and width >= FEWEST_COLUMNS
                and all(map(is_remark, below))
            ):
                rows = [row if len(row) == width else [row[0], *[""] * (width - 1)] for row in rows]
                wrong = None
            if wrong is not None:
                raise FileError(
                    f"{layout.at(lines[wrong])}: {len(rows[wrong])} cells where the first line has "
                    f"{width}. Look for a missing or extra {reader.dialect.delimiter!r} or quote "
                    "there."
                )
        yield lines, as_object(list(chain.from_iterable(rows))).reshape(-1, width)


# -- JSON lines: one object per sample, its keys are the columns


def open_json_lines(file: str, ids: str | None, options: ReadOptions) -> Table:
    """Look at all lines of a file: which keys there are is known at the end only."""
    keys: dict[str, None] = {}
    texts, others = set[str](), dict[str, str]()
    lines = 0
    with reading(file, "JSON lines"):
        for line, record in _records(file):
            lines += 1
            keys |= dict.fromkeys(record)
            for key, value in record.items():
                if isinstance(value, str):
                    texts.add(key)
                elif key != ids and not (value is None or isinstance(value, int | float)):
                    others.setdefault(key, f"line {line} holds {str(value)[:40]!r}")
    if not keys:
        raise FileError(f"{file}: the file is empty. Leave the view out.")
    check_names(file, list(keys), ids)
    features = options.wanted([key for key in keys if key != ids], file, FileError)
    taken = set(features)
    check_numbers(file, {key: what for key, what in others.items() if key in taken}, ids)
    coded = [key for key in features if key in texts or options.is_coded(key)]
    codes = codes_of(coded, file, options)
    Budget(file).spool(8 * lines * len(features), f"{lines:,} lines × {len(features):,} keys")
    batches = partial(_json_batches, file, features, ids, codes)
    dropped = without(keys, (*features, ids))
    return Table(Batches(lambda _: batches()), features=features, codes=codes, dropped=dropped)


def _records(file: str) -> Iterator[tuple[int, dict[str, Any]]]:
    # Python's json, as DuckDB takes 1e999 for infinity, and one of two values with the same key.
    place = file

    def as_float(text: str) -> float:
        value = float(text)
        if isinf(value):
            raise too_large(place, text, "write null")
        return value

    def as_int(text: str) -> int:
        if len(text) > 308:  # Python refuses thousands of digits, and float64 more than 308
            as_float(text)
        return int(text)

    def as_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            key = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise FileError(f"{place}: the key {key!r} stands there twice. Keep one.")
        return found

    decode = partial(json.loads, object_pairs_hook=as_dict, parse_float=as_float, parse_int=as_int)
    with Unpacked(file, LONGEST_LINE) as stream:
        for number, line in enumerate(io.BufferedReader(stream, 2**20), 1):
            if not line.strip():
                continue
            place = f"{file}, line {number}"
            try:
                record = decode(line)
            except FileError:
                raise
            except (ValueError, RecursionError) as error:
                raise FileError(
                    f"{place}: not JSON ({str(error)[:100]}). Write one object per line, in UTF-8."
                ) from error
            if not isinstance(record, dict):
                raise FileError(
                    f"{place}: a {type(record).__name__}, not an object. Write "
                    '{"column": value, …} on each line.'
                )
            yield number, record


def _json_batches(
    file: str, features: tuple[str, ...], ids: str | None, codes: dict[str, Codes]
) -> Iterator[Batch]:
    with reading(file, "JSON lines"):
        records = _records(file)
        while block := list(islice(records, batch_rows(len(features)))):
            known = None
            if ids is not None:
                known = ids_of_text(
                    [id_of_cell(file, f"line {line}", record.get(ids)) for line, record in block]
                )
            rows = [[record.get(key) for key in features] for _, record in block]
            cells = np.array(rows, dtype=object)
            for j, name in enumerate(features):
                if name in codes:
                    cells[:, j] = codes[name](Cells.of(cells[:, j]))
            yield known, cells.astype(np.float64)
