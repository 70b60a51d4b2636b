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
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from viewfold._file import File
from viewfold._option import helped_by, option
from viewfold.io._asked import asked_now
from viewfold.io._budget import Budget, Unpacked
from viewfold.io._columns import Codes, codes_of
from viewfold.io._encoding import encoding_of, not_text
from viewfold.io._numerals import (
    AmbiguousError,
    NotANumberError,
    Numerals,
    helps,
    hint,
    holds_numbers,
    is_ambiguous,
    numerals_of,
    ways_to_read,
)
from viewfold.io._source import Batch, FileError, reading
from viewfold.io._tables import (
    Table,
    arrow_batch,
    check_names,
    check_present,
    ids_of_text,
)

_SAMPLE_ROWS, _SAMPLE_CELLS = 100, 500_000
_LONGEST_LINE = 64 * 2**20
_PER_COLUMN = 1000  # bytes: its name, its type, the cells that are looked at
_BLOCK = 4 * 2**20
_BOOLEAN = frozenset(["true", "True", "TRUE", "false", "False", "FALSE"])


@dataclass(frozen=True)
class _Layout:
    """How to read the file, as its first rows tell."""

    encoding: str
    delimiter: str
    numerals: Numerals
    names: tuple[str, ...]
    named: bool
    kinds: dict[str, Any]
    skip: int
    block: int
    empty: frozenset[str]

    @property
    def written(self) -> dict[str, str]:
        """What had to be found out, as people are told."""
        plain = "utf-8" if self.encoding.startswith("utf-8") else self.encoding
        found = {"encoding": plain, "delimiter": self.delimiter}
        found["decimal"] = self.numerals.decimal
        return found | ({"thousands": t} if (t := self.numerals.thousands) else {})


def open_table(file: str, ids: str | None, asked: File) -> Table:
    """Look at the first rows of a file."""
    with reading(file, "text with one row per sample"):
        layout = _layout(file, ids, asked)
    features = tuple(name for name in layout.kinds if name != ids)
    dtype = np.dtype(np.float64)
    named = features if layout.named else None
    _tell(file, layout, asked)
    codes = codes_of((name for name in features if layout.kinds[name] == pa.string()), file)
    dropped = tuple(name for name in layout.names if name not in layout.kinds)
    if codes:
        named = features  # features are called like the columns that they come from
    batches = partial(_batches, file, layout, features, dtype, ids, codes)
    return Table(named, dtype, lambda _: batches(), codes, dropped, layout.written)


def _tell(file: str, layout: _Layout, asked: File) -> None:
    """Tell what was guessed, unless it is what most files have."""
    told = []
    if asked.encoding is None and not layout.encoding.startswith("utf-8"):
        told.append(f"text in {layout.encoding} ({option('encoding')} if it is in another one)")
    if asked.decimal is None and layout.numerals.decimal == ",":
        told.append("commas are decimal signs")
    numbers = [name for name in layout.names if layout.named and holds_numbers([name])]
    if numbers and numbers != [str(i) for i in range(len(numbers))]:
        told.append(f"the first line holds the names of columns, such as {numbers[0]!r}")
    if told:
        warnings.warn(f"{file}: {', and '.join(told)}.", stacklevel=2)


def _layout(file: str, ids: str | None, asked: File) -> _Layout:
    encoding = asked.encoding or encoding_of(file)
    with Unpacked(file) as stream:
        raw = io.BufferedReader(stream)
        text = io.TextIOWrapper(raw, encoding=_without_mark(encoding), newline="")
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
            raise _unclosed(file) from error
    named = _is_header(header, ids, asked)
    if named:
        names = header
    else:
        names, sample, skip = [f"column{i}" for i in range(len(header))], [header, *sample], 0
    check_names(file, names, ids)
    line = 1 + blank + skip
    numerals = _numerals(file, names, sample, delimiter, ids, asked, line)
    kinds = _kinds(file, names, sample, ids, numerals, line)
    # Many rows per block where rows are long: a block costs time for each of its columns.
    block = max(_BLOCK, min(256 * len(first), _LONGEST_LINE), 4 * len(first))
    at, empty = blank + skip, asked_now().empty_markers
    return _Layout(encoding, delimiter, numerals, tuple(names), named, kinds, at, block, empty)


def _without_mark(encoding: str) -> str:
    """Return an encoding that leaves out the mark with which a text may begin."""
    return "utf-8-sig" if re.sub(r"[-_]", "", encoding.lower()) == "utf8" else encoding


def _numerals(
    file: str,
    names: list[str],
    sample: list[list[str]],
    delimiter: str,
    ids: str | None,
    asked: File,
    line: int,
) -> Numerals:
    said = asked_now()
    wanted = said.wanted([name for name in names if name != ids], file)
    skip = {j for j, n in enumerate(names) if n not in wanted or said.is_coded(n)}
    try:
        return numerals_of(sample, delimiter, skip, asked)
    except AmbiguousError as error:
        place = f"{file}, line {line + error.row}, column {names[error.column]!r}"
        raise _unclear(place, error.cell) from None


def _first_line(file: str, text: io.TextIOWrapper) -> tuple[str, int]:
    """Return the first line that is not blank, and how many blank ones there are before it."""
    blank = 0
    while line := text.readline(_LONGEST_LINE):
        if line.strip("\r\n"):
            return line, blank
        blank += 1
    raise FileError(f"{file}: the file is empty. Leave the view out.")


def _lines(first: str, text: io.TextIOWrapper) -> Iterator[str]:
    yield first
    while line := text.readline(_LONGEST_LINE):
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


def _is_header(cells: list[str], ids: str | None, asked: File) -> bool:
    """Whether the first row holds names: some text, or 0, 1, 2, … as pandas counts columns."""
    if ids is not None and ids in cells:
        return True
    rest = cells[1:] if cells[0] == "" else cells
    if rest == [str(i) for i in range(len(rest))] and len(cells) > 2:
        return True
    # Numbers are numbers, however they are written.
    ways = [Numerals("."), Numerals(",")]
    if asked.thousands is not None:
        ways.append(numerals_of([], "", (), asked))
    return not any(all(_kind(cell, way) in ("number", "empty") for cell in cells) for way in ways)


def _kind(cell: str, numerals: Numerals) -> str:
    if cell in asked_now().empty_markers:
        return "empty"
    if cell in _BOOLEAN:
        return "boolean"
    try:
        numerals.value(cell)
    except ValueError:
        return "text"
    return "number"


def _kinds(
    file: str,
    names: list[str],
    sample: list[list[str]],
    ids: str | None,
    numerals: Numerals,
    line: int,
) -> dict[str, Any]:
    """Return an Arrow type for each column that is read."""
    kinds: dict[str, Any] = {}
    asked = asked_now()
    wanted = set(asked.wanted([name for name in names if name != ids], file))
    for j, name in enumerate(names):
        if name not in wanted and name != ids:
            continue
        cells = [(i, row[j]) for i, row in enumerate(sample) if len(row) > j]
        found = [_kind(cell, numerals) for _, cell in cells]
        if name == ids or asked.is_coded(name):
            kinds[name] = pa.string()
        elif "text" not in found:
            only_flags = "boolean" in found and "number" not in found
            kinds[name] = pa.bool_() if only_flags else pa.float64()
        elif "number" not in found and not any(hint(cell) for _, cell in cells):
            kinds[name] = pa.string()
        else:
            i, cell = cells[found.index("text")]
            raise _not_a_number(file, line + i, name, cell, numerals)
    return kinds


def _unclear(place: str, cell: str) -> FileError:
    sign = "," if "," in cell else "."
    return helped_by(FileError(f"{place}: {ways_to_read(cell)}"), decimal=sign)


def _unclosed(file: str) -> FileError:
    return FileError(
        f"{file}: a quote is opened and not closed, or a cell is very long. Look for a single "
        '" in the file.'
    )


def _not_a_number(
    file: str, line: int | str, name: str, cell: str, numerals: Numerals
) -> FileError:
    if is_ambiguous(cell) and not numerals.met:
        return _unclear(f"{file}, line {line}, column {name!r}", cell)
    if "\n" in cell:
        return _unclosed(f"{file}, line {line}, column {name!r}")
    hinted = hint(cell[:40], numerals)
    advice = hinted or (
        "Correct or impute it; of a sample that the view lacks, leave all cells empty. If it "
        f"stands for a missing cell, name it with {option('empty_markers')}; if {name!r} is a "
        f"category, say {option('categories', [name])}."
    )
    said = f"{file}, line {line}, column {name!r}: {cell[:40]!r} is not a number. {advice}"
    return helped_by(
        FileError(said), **(helps(cell, numerals) if hinted else {"categories": [name]})
    )


def _batches(
    file: str,
    layout: _Layout,
    features: tuple[str, ...],
    dtype: np.dtype[Any],
    ids: str | None,
    codes: dict[str, Codes],
) -> Iterator[Batch]:
    row = 0
    with reading(file, "text with one row per sample"), Unpacked(file) as stream:
        try:
            for batch in _reader(stream, layout):
                if not layout.numerals.usual:
                    batch = _with_numbers(file, layout, batch, row)
                known, rows = arrow_batch(file, batch, features, dtype, None, row, codes)
                if ids is not None:
                    texts = batch.column(batch.schema.get_field_index(ids))
                    check_present(file, texts, row, partial(_line_of, file, layout))
                    known = ids_of_text(texts)
                row += batch.num_rows
                yield known, rows
        except UnicodeError as error:
            raise not_text(file, layout.encoding, error) from error
        except pa.ArrowInvalid as error:
            raise _explained(file, layout, str(error)) from error


def _with_numbers(file: str, layout: _Layout, batch: Any, row: int) -> Any:
    """Return a batch of texts, whose first row is number `row`, with numbers instead."""
    columns = []
    for name, kind in layout.kinds.items():
        column = batch.column(batch.schema.get_field_index(name))
        if kind == pa.float64():
            column = pc.if_else(
                pc.is_in(column, value_set=pa.array(sorted(layout.empty))), None, column
            )
            try:
                column = layout.numerals.numbers(column)
            except NotANumberError as error:
                line = _line_of(file, layout, row + error.row).removeprefix("line ")
                raise _not_a_number(file, line, name, error.cell, layout.numerals) from None
        columns.append(column)
    return pa.record_batch(columns, names=list(layout.kinds))


def _line_of(file: str, layout: _Layout, row: int) -> str:
    """Return the line in which a row begins: rows may have several lines, or blank ones between."""
    with Unpacked(file) as stream:
        encoding = _without_mark(layout.encoding)
        text = io.TextIOWrapper(io.BufferedReader(stream), encoding=encoding, newline="")
        for _ in range(layout.skip):
            text.readline(_LONGEST_LINE)
        rows = csv.reader(text, delimiter=layout.delimiter)
        begin = 0
        for cells in rows:
            if cells or len(layout.names) == 1:
                if row == 0:
                    break
                row -= 1
            begin = rows.line_num
    return f"line {layout.skip + begin + 1}"


def _reader(stream: Any, layout: _Layout) -> Any:
    kinds, own = layout.kinds, layout.numerals.usual
    if not own:
        kinds = {n: pa.string() if kind == pa.float64() else kind for n, kind in kinds.items()}
    # One thread, because only then are errors told with their line.
    return pyarrow.csv.open_csv(
        stream,
        pyarrow.csv.ReadOptions(
            use_threads=False,
            block_size=layout.block,
            skip_rows=layout.skip,
            column_names=list(layout.names),
            encoding=_for_arrow(layout.encoding),
        ),
        pyarrow.csv.ParseOptions(
            delimiter=layout.delimiter,
            newlines_in_values=True,
            # Where a row is a single cell, an empty line is an empty cell.
            ignore_empty_lines=len(layout.names) > 1,
        ),
        pyarrow.csv.ConvertOptions(
            column_types=kinds,
            include_columns=list(kinds),
            null_values=sorted(layout.empty),
            decimal_point=layout.numerals.decimal if own else ".",
        ),
    )


def _for_arrow(encoding: str) -> str:
    """Return the encoding as Arrow calls it: UTF-8 is read as it is, a mark at its start too."""
    return "utf8" if _without_mark(encoding) == "utf-8-sig" else encoding


def _explained(file: str, layout: _Layout, said: str) -> FileError:
    """Say what pyarrow says in the words of the file's owner."""
    cell = re.search(r"column #(\d+): (?:Row #(\d+): )?.*invalid value '(.*)'", said, re.DOTALL)
    if cell:
        name, numerals = layout.names[int(cell[1])], layout.numerals
        return _not_a_number(file, cell[2] or "?", name, cell[3], numerals)
    row = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", said)
    if row:
        return FileError(
            f"{file}, line {row[1]}: {row[3]} cells where the first line has {row[2]}. Look for a "
            f"missing or extra {layout.delimiter!r} or quote there."
        )
    if "straddl" in said:
        return _unclosed(file)
    line = re.search(r"Row #(\d+)", said)
    where = f", line {line[1]}" if line else ""
    name = "UTF-8" if layout.encoding.startswith("utf-8") else layout.encoding
    return FileError(
        f"{file}{where}: {said.splitlines()[0][:200]}. Is it text in {name}? Otherwise say "
        f"{option('encoding')}."
    )
