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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, islice
from math import isinf
from typing import Any, Literal, TypeAlias

import numpy as np

from viewfold._util.file import ReadOptions
from viewfold._util.types import Array
from viewfold.data.cleaning import (
    FEWEST_COLUMNS,
    SAMPLE_ROWS,
    Form,
    Place,
    Totals,
    UndecidedError,
    declare_codes,
    find_forms,
    find_table,
    is_remark,
    joined_names,
    loose_number,
    mark_last,
    without_end,
)
from viewfold.data.codes import Cells, Codes, codes_of
from viewfold.data.guard import LONGEST_LINE, Budget, Unpacked
from viewfold.data.numbers import (
    NotANumberError,
    Numerals,
    hint,
    holds_numbers,
    is_too_large,
    not_a_number,
    numerals_of,
    unclosed,
)
from viewfold.data.source import (
    Batch,
    FileError,
    Table,
    as_object,
    batch_rows,
    check_names,
    check_numbers,
    check_present,
    id_columns,
    id_of_cell,
    ids_of_text,
    join_ids,
    reading,
    too_large,
    without,
)

CellKind: TypeAlias = Literal["number", "flag", "text"]

_WHAT = "text with one row per sample"
_SAMPLE = 4 * 2**20  # bytes that tell the encoding
_SAMPLE_CELLS = 500_000  # that tell the rest
_LOOKED_AT = 100  # lines that tell the delimiter, and where the table begins
_PER_COLUMN = 1000  # bytes: its name, its type, the cells that are looked at
_LONGEST_ROW = 64 * 2**20  # bytes of a line of CSV
_BLOCK_CELLS, _BLOCK_TEXT = 2**18, 2**24  # some 20 MB: cells, and characters of long cells
_PIECE = 2**18  # bytes that are decoded at once
_LINE_END = re.compile(r"\r\n|\r|\n")
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f"))
_BOOLEAN = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}
_FLAGS = {"1": 1.0, "0": 0.0, **_BOOLEAN}


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
        while len(self.looked_at) < _LOOKED_AT and size < _SAMPLE and (line := next(self.text, "")):
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


@dataclass(frozen=True)
class _Layout:
    """How a delimited text is written, as its first rows tell."""

    file: str
    lines: _Lines
    delimiter: str
    numerals: Numerals
    names: tuple[str, ...]
    named: bool
    kinds: dict[str, CellKind]  # of the columns that are read
    skip: int  # lines of the header
    empty: frozenset[str]
    cleaning: Mapping[str, Form]  # how columns are written, to be remembered
    forms: Mapping[str, Form]  # those of columns that are rewritten before they are read
    cleaned: list[str]  # what was done to the file, for people
    left_out: list[int]  # columns without a name or cells
    as_is: bool

    @property
    def most_rows(self) -> int:
        """How many rows are parsed at once."""
        longest = max(map(len, self.lines.looked_at))  # the others may well be like these
        return max(64, min(_BLOCK_CELLS // len(self.names), _BLOCK_TEXT // longest))

    @property
    def written(self) -> dict[str, str]:
        """What had to be found out, as people are told."""
        encoding = self.lines.encoding
        plain = "utf-8" if encoding.startswith("utf-8") else encoding
        found = {"encoding": plain, "delimiter": self.delimiter}
        found["decimal"] = self.numerals.decimal
        return found | ({"thousands": t} if (t := self.numerals.thousands) else {})


def open_delimited(file: str, ids: str | None, options: ReadOptions) -> Table:
    """Look at the first rows of a file."""
    with reading(file, _WHAT):
        layout = _layout(file, ids, options)
    of_ids = id_columns(ids, layout.names)
    features = tuple(name for name in layout.kinds if name not in of_ids)
    _tell(layout, options)
    codes = codes_of((name for name in features if layout.kinds[name] == "text"), file, options)
    declare_codes(codes, layout.forms)
    nameless = {layout.names[j] for j in layout.left_out}
    dropped = without(layout.names, {*layout.kinds, *nameless})
    batches = partial(_delimited_batches, layout, features, ids, codes)
    # Features of categories are called like the columns that they come from.
    named = features if layout.named or codes else None
    dtype = np.dtype(np.float64)
    return Table(
        named,
        dtype,
        lambda _: batches(),
        codes,
        dropped,
        layout.written,
        {name: str(form) for name, form in layout.cleaning.items()},
        layout.cleaned,
    )


def _tell(layout: _Layout, options: ReadOptions) -> None:
    """Tell what was guessed, unless it is what most files have."""
    told, encoding = [], layout.lines.encoding
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
        warnings.warn(f"{layout.file}: {', and '.join(told)}.", stacklevel=2)


def _layout(file: str, ids: str | None, options: ReadOptions) -> _Layout:
    lines = _Lines(file, options.encoding)
    try:
        delimiter = _delimiter(file, lines.peek())
        most_delimiters = max(line.count(delimiter) for line in lines.looked_at)
        Budget(file).hold(_PER_COLUMN * most_delimiters, "that many columns")
        reader = csv.reader(lines.look(), delimiter=delimiter)
        most = max(3, min(SAMPLE_ROWS, _SAMPLE_CELLS // (most_delimiters + 1)))
        # Each row, and the line after which it ends.
        rows = [(row, reader.line_num) for row in islice(reader, most)]
    except UnicodeError as error:
        raise _not_text(file, lines.encoding, error) from error
    except csv.Error as error:
        raise unclosed(file) from error
    place = Place() if options.as_is else find_table([row for row, _ in rows[:_LOOKED_AT]])
    top = place.skip + place.header
    names = [name.lstrip("\ufeff") for name in joined_names([r for r, _ in rows[place.skip : top]])]
    named, skip = place != Place() or _is_header(names, ids, options), rows[top - 1][1]
    if not named:
        names, skip, top = [f"column{i}" for i in range(len(names))], 0, 0
    sample = [row for row, _ in rows[top:] if row]
    # A delimiter at the end of each line makes a column without a name and cells.
    empty = [
        j
        for j, name in enumerate(names)
        if not name and j and not any("".join(row[j : j + 1]).strip() for row in sample)
    ]
    empty = [] if options.as_is else empty
    names = [f"column {j + 1}" if j in empty else name for j, name in enumerate(names)]
    check_names(file, names, ids)
    if len(rows) < most and not options.as_is:
        sample = without_end(sample)
    of_ids = id_columns(ids, names)
    usable = [n for j, n in enumerate(names) if n not in of_ids and j not in empty]
    wanted = set(options.wanted(usable, file, FileError))
    line = 1 + lines.n_blank + skip
    cells = {
        name: [(line + i, row[j]) for i, row in enumerate(sample) if len(row) > j]
        for j, name in enumerate(names)
    }
    raw = {name: [cell for _, cell in cells[name]] for name in names if name in wanted}
    try:
        found = find_forms(raw, options, delimiter, of_ids)
    except UndecidedError as error:
        at_line = next(at for at, cell in cells[error.column] if cell == error.cell)
        raise error.at(f"{file}, line {at_line}") from None
    cleaning, forms = found.forms, dict(found.forms)
    numerals = _common_numerals(forms, {n: cells[n] for n in names if n in wanted})
    if numerals is None:
        other = {
            j
            for j, name in enumerate(names)
            if name not in wanted or options.is_coded(name) or name in forms
        }

        def at(i: int, j: int) -> str:
            return f"{file}, line {line + i}, column {names[j]!r}"

        numerals = numerals_of(sample, delimiter, other, options, at)
    kinds: dict[str, CellKind] = {}
    for name in names:
        if name in forms:
            kinds[name] = "text" if forms[name].is_text else "number"
        elif name in of_ids or (name in wanted and options.is_coded(name)):
            kinds[name] = "text"
        elif name in found.plain:
            kinds[name] = "number"
        elif name in wanted:
            kinds[name] = _kind(file, name, cells[name], numerals, options.markers)
    return _Layout(
        file=file,
        lines=lines,
        delimiter=delimiter,
        numerals=numerals,
        names=tuple(names),
        named=named,
        kinds=kinds,
        skip=skip,
        empty=options.markers,
        cleaning=cleaning,
        forms=forms,
        cleaned=[
            *place.told,
            *(f"left out {names[j]}, which is empty" for j in empty),
            *(found.told[name] for name in forms),
        ],
        left_out=empty,
        as_is=options.as_is,
    )


def _common_numerals(
    forms: dict[str, Form], cells: Mapping[str, Sequence[tuple[int, str]]]
) -> Numerals | None:
    """Return how all numbers without units are written, if in one way; their forms are removed.

    So a file with decimal commas is read as fast as one with points.
    """
    bare = {}
    for name, form in forms.items():
        if form.kind == "number":
            way = Numerals(form.detail[0], form.detail[1:] or None, met=True)
            if all(way.can_read(cell) or not cell.strip() for _, cell in cells[name]):
                bare[name] = way
    if len(set(bare.values())) != 1:
        return None
    way, usual = next(iter(bare.values())), Numerals(".")
    for name, held in cells.items():
        if name not in forms and any(
            usual.can_read(cell) and not way.can_read(cell) for _, cell in held
        ):
            return None
    for name in bare:
        del forms[name]
    return way


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
        ways.append(numerals_of([], "", (), options, lambda i, j: ""))
    fine = ("number", "empty")
    return not any(
        all(_kind_of_cell(cell, way, options.markers) in fine for cell in cells) for way in ways
    )


def _kind_of_cell(cell: str, numerals: Numerals, empty: frozenset[str]) -> str:
    if cell in empty or cell in _BOOLEAN:
        return "empty" if cell in empty else "boolean"
    return "number" if numerals.can_read(cell) else "text"


def _kind(
    file: str, name: str, cells: list[tuple[int, str]], numerals: Numerals, empty: frozenset[str]
) -> CellKind:
    """Return what the cells of a column are, given with their lines."""
    found = [_kind_of_cell(cell, numerals, empty) for _, cell in cells]
    if "text" not in found:
        return "flag" if "boolean" in found and "number" not in found else "number"
    if "number" not in found and not any(hint(cell) for _, cell in cells):
        return "text"
    line, cell = cells[found.index("text")]
    raise not_a_number(f"{file}, line {line}, column {name!r}", name, cell, numerals)


def _delimited_batches(
    layout: _Layout, features: tuple[str, ...], ids: str | None, codes: dict[str, Codes]
) -> Iterator[Batch]:
    file, column = layout.file, {name: j for j, name in enumerate(layout.names)}
    of_ids = id_columns(ids, layout.names)
    numbers = [at for at, name in enumerate(features) if layout.kinds[name] == "number"]
    numeric = [features[at] for at in numbers]
    totals = Totals(len(numbers))
    others = [(at, name) for at, name in enumerate(features) if layout.kinds[name] != "number"]
    with reading(file, _WHAT), layout.lines.text:
        try:
            for lines, table, last in mark_last(_blocks(layout)):
                if not layout.as_is:
                    lines, table = _without_blank(layout, lines, table, last)
                if last and not layout.as_is and _ends_in_totals(layout, table, numeric, totals):
                    layout.cleaned.append(f"line {lines[-1]} holds totals and is left out")
                    lines, table = lines[:-1], table[:-1]
                if layout.left_out and "".join(table[:, layout.left_out].ravel()).strip():
                    raise FileError(f"{file}: a column without a name holds values. Name it.")
                for name, form in layout.forms.items():
                    j = column[name]
                    table[:, j] = form.rewrite_all(table[:, j].tolist(), layout.empty)
                matrix = np.empty((len(lines), len(features)))
                matrix[:, numbers] = _numbers(
                    layout, lines, table, [column[features[at]] for at in numbers]
                )
                totals.add(matrix[:, numbers])
                for at, name in others:
                    cells = table[:, column[name]].tolist()
                    if layout.kinds[name] == "text":
                        matrix[:, at] = codes[name](Cells.of(cells))
                    else:
                        matrix[:, at] = _flags(layout, lines, name, cells)
                if ids is None:
                    yield None, matrix
                    continue
                held = [table[:, column[name]].tolist() for name in of_ids]
                for texts in held:
                    check_present(file, texts, lambda at: f"line {lines[at]}")  # noqa: B023
                yield ids_of_text(join_ids(held)), matrix
        except UnicodeError as error:
            raise _not_text(file, layout.lines.encoding, error) from error
        except csv.Error as error:
            raise unclosed(file) from error


def _without_blank(
    layout: _Layout, lines: Sequence[int], table: Array, last: bool
) -> tuple[Sequence[int], Array]:
    """Return rows without those that are blank, and the file without remarks below the table."""
    if table.shape[1] < FEWEST_COLUMNS:
        return lines, table
    blank = np.flatnonzero(~table[:, : FEWEST_COLUMNS - 1].astype(bool).any(axis=1))
    gone = {i for i in blank.tolist() if not "".join(table[i]).strip()}
    n = len(table)
    while last and n > 1 and is_remark(table[n - 1]):
        n -= 1
        gone.add(n)
    if not gone:
        return lines, table
    told = "left out rows that are blank, or a remark below the table"
    if told not in layout.cleaned:
        layout.cleaned.append(told)
    keep = [i for i in range(len(table)) if i not in gone]
    return [lines[i] for i in keep], table[keep]


def _ends_in_totals(layout: _Layout, table: Array, names: list[str], totals: Totals) -> bool:
    place = {name: j for j, name in enumerate(layout.names)}
    at = [place[name] for name in names]
    usual = Form("number", layout.numerals.decimal + (layout.numerals.thousands or ""))
    forms = [layout.forms.get(name, usual) for name in names]
    row = [loose_number(table[-1, j], form) for j, form in zip(at, forms, strict=True)]

    def above(j: int) -> Array:
        return np.array([loose_number(cell, forms[j]) for cell in table[:-1, at[j]].tolist()])

    return totals.are_in(np.array(row), above)


def _blocks(layout: _Layout) -> Iterator[tuple[Sequence[int], Array]]:
    """Yield rows of cells, and the lines in which they begin."""
    width, delimiter = len(layout.names), layout.delimiter
    source, line = layout.lines.after(layout.skip), layout.lines.n_blank + layout.skip + 1
    most, longest = layout.most_rows, csv.field_size_limit()
    while lines := list(islice(source, most)):
        text = "".join(lines)
        plain = width > 1 and '"' not in text and len(max(lines, key=len)) < longest
        if not plain or {one.count(delimiter) for one in lines} != {width - 1}:
            yield from _parsed_blocks(layout, chain(lines, source), line)
            return
        # Nothing is quoted, and every line is a row: this takes half the time of the module csv.
        ends = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
        cells = ends.replace("\n", delimiter).split(delimiter)
        yield range(line, line + len(lines)), as_object(cells).reshape(-1, width)
        line += len(lines)


def _parsed_blocks(
    layout: _Layout, source: Iterator[str], line: int
) -> Iterator[tuple[Sequence[int], Array]]:
    # Not pandas: it fills rows that are too short, and does not say in which line a cell is.
    reader = csv.reader(source, delimiter=layout.delimiter, strict=True)
    width, begin = len(layout.names), line
    while rows := list(islice(reader, layout.most_rows)):
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
            below = rows[wrong:] if wrong and len(rows) < layout.most_rows else []
            if (
                below
                and not layout.as_is
                and width >= FEWEST_COLUMNS
                and all(map(is_remark, below))
            ):
                rows = [row if len(row) == width else [row[0], *[""] * (width - 1)] for row in rows]
                wrong = None
            if wrong is not None:
                raise FileError(
                    f"{layout.file}, line {lines[wrong]}: {len(rows[wrong])} cells where the first "
                    f"line has {width}. Look for a missing or extra {layout.delimiter!r} or quote "
                    "there."
                )
        yield lines, as_object(list(chain.from_iterable(rows))).reshape(-1, width)


def _numbers(layout: _Layout, lines: Sequence[int], table: Array, columns: list[int]) -> Array:
    """Return the cells of some columns as numbers."""
    formed = [j for j in columns if layout.names[j] in layout.forms]
    if formed and len(formed) < len(columns):  # these are written with points now
        found = np.empty((len(table), len(columns)))
        of_forms = np.isin(columns, formed)
        rest = [j for j in columns if j not in set(formed)]
        found[:, of_forms] = _numbers(layout, lines, table, formed)
        found[:, ~of_forms] = _numbers(layout, lines, table, rest)
        return found
    numerals = Numerals(".", met=True) if formed else layout.numerals
    cells: list[str] = table[:, columns].ravel().tolist()

    def place(at: int) -> tuple[str, str]:
        row, j = divmod(at, len(columns))
        name = layout.names[columns[j]]
        return f"{layout.file}, line {lines[row]}, column {name!r}", name

    try:
        found = numerals.numbers(cells, layout.empty)
    except NotANumberError as error:
        raise not_a_number(*place(error.at), error.cell, numerals) from None
    for at in np.flatnonzero(np.isinf(found)):
        if is_too_large(cells[at], found[at]):
            raise too_large(place(int(at))[0], cells[at].strip())
    return found.reshape(len(table), len(columns))


def _flags(layout: _Layout, lines: Sequence[int], name: str, cells: Sequence[str]) -> list[float]:
    flags = {**_FLAGS, **dict.fromkeys(layout.empty, np.nan)}
    for line, cell in zip(lines, cells, strict=True):
        if cell not in flags:
            place = f"{layout.file}, line {line}, column {name!r}"
            raise not_a_number(place, name, cell, layout.numerals)
    return [flags[cell] for cell in cells]


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
    return Table(features, np.dtype(np.float64), lambda _: batches(), codes, dropped)


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
