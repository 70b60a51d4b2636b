"""Excel workbooks (.xlsx): every sheet is a table, with names in its first row.

openpyxl reads them row by row, so that no sheet is ever held as a whole, as pandas would. It is
asked only after the archive was looked at: sizes, macros, definitions that would unfold in memory.
"""

from __future__ import annotations

import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import chain, count, islice
from typing import IO, Any, TypeAlias
from xml.etree.ElementTree import fromstring

import numpy as np

from viewfold._util.file import ReadOptions
from viewfold._util.messages import format_names
from viewfold._util.types import Array
from viewfold.data.arrays import Batches
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
    plain_value,
    without_end,
)
from viewfold.data.codes import Cells, Codes, codes_of
from viewfold.data.guard import Budget
from viewfold.data.source import (
    Batch,
    FileError,
    FileView,
    batch_rows,
    check_names,
    id_columns,
    id_of_cell,
    ids_of_text,
    join_ids,
    optional,
    reading,
    too_large,
    without,
)

Rows: TypeAlias = Iterator[tuple[int, tuple[Any, ...]]]  # numbers of rows, and their cells
MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384  # of a sheet, as Excel has them
_PER_BYTE = 8  # bytes of memory for a byte of what is read as a whole: shared texts and styles
_WHAT = "an Excel workbook"
_TYPES = "[Content_Types].xml"  # which part of the archive is what
_FORMULA = re.compile(rb"<(\w{1,10}:)?f[ />]")
_ROW, _CELL = (re.compile(rb"<(?:[^<>\s:/]*:)?" + tag + rb"[\s/>]") for tag in (b"row", b"c"))


@dataclass(frozen=True)
class _Sheet:
    """A sheet of a workbook that was opened twice if it has formulas: for results and for them."""

    file: str
    name: str
    books: tuple[Any, ...]
    stream: IO[bytes]
    unread: set[str] = field(default_factory=set, compare=False)  # sheets of the workbook

    def close(self) -> None:
        """Close the workbook after its last sheet."""
        self.unread.discard(self.name)
        if not self.unread:
            for book in self.books:
                book.close()
            self.stream.close()

    @property
    def place(self) -> str:
        return f"{self.file}, sheet {self.name!r}"

    def rows(self) -> Rows:
        """Yield the rows that hold anything, with their numbers, without empty cells at the end."""
        with reading(self.file, _WHAT):
            written = self._written()
            for number in count(1):
                try:
                    cells = next(written, None)
                except FileError:
                    raise
                except ValueError as error:  # a number of thousands of digits, for instance
                    raise FileError(
                        f"{self.place}, row {number}: a cell cannot be read ({error}). Correct it."
                    ) from error
                if cells is None:
                    return
                if number > MOST_ROWS or len(cells) > MOST_COLUMNS:
                    raise FileError(f"{self.place}: more rows or columns than Excel has.")
                while cells and cells[-1] is None:
                    cells = cells[:-1]
                if cells:
                    yield number, cells

    def _written(self) -> Iterator[tuple[Any, ...]]:
        """Yield all rows. A formula counts as its result, which has to be there."""
        sheets = [book[self.name] for book in self.books]
        for sheet in sheets:
            sheet.reset_dimensions()  # they are what the file says, not what it holds
        values, *formulas = (sheet.iter_rows(values_only=True) for sheet in sheets)
        for number, (cells, *texts) in enumerate(zip(values, *formulas, strict=True), 1):
            pairs = zip(cells, texts[0], strict=False) if texts else ()
            for j, (cell, text) in enumerate(pairs, 1):
                if cell is None and text is not None:
                    raise FileError(
                        f"{self.place}, row {number}, column {j}: a formula without a result. "
                        "Open the file in a spreadsheet program, and save it."
                    )
            yield cells


def read_excel(file: str, ids: str | None, options: ReadOptions) -> dict[str, FileView]:
    """Open the sheets of a workbook that hold anything, or those that are named."""
    openpyxl = optional("openpyxl", "excel", file)
    with reading(file, _WHAT), ExitStack() as stack:
        stream = stack.enter_context(open(file, "rb"))
        kinds = (True, False) if _check_archive(file, stream) else (True,)
        books = tuple(
            openpyxl.load_workbook(stream, read_only=True, data_only=results, keep_links=False)
            for results in kinds
        )
        stack.pop_all()  # who reads the last sheet closes it
    there, wanted = [sheet.title for sheet in books[0].worksheets], options.sheet
    for name in wanted or []:
        if name not in there:
            raise FileError(f"{file}: there is no sheet {name!r}. It has {format_names(there)}.")
    unread = set[str]()
    sheets = [_Sheet(file, name, books, stream, unread) for name in wanted or there]
    rows = {sheet: sheet.rows() for sheet in sheets}
    full = {sheet: first for sheet in sheets if (first := next(rows[sheet], None)) is not None}
    unread.update(sheet.name for sheet in full)
    if not full or (wanted and len(full) < len(sheets)):
        empty = "the sheet" if wanted else "every sheet"
        raise FileError(f"{file}: {empty} is empty. Leave the view out.")
    if len(full) == 1 and wanted is None:
        ((sheet, (_, header)),) = full.items()
        return {"": _view(sheet, header, rows[sheet], ids, options)}
    views = {}
    for sheet, (_, header) in full.items():
        own = options.in_file(sheet.name)
        try:
            views[sheet.name] = _view(sheet, header, rows[sheet], ids, own)
        except FileError as error:
            raise FileError(f"{error} Or choose other sheets with sheet=….") from None
    return views


def _view(
    sheet: _Sheet, header: tuple[Any, ...], rows: Rows, ids: str | None, options: ReadOptions
) -> FileView:
    """Tell from the first rows which columns hold numbers, and which something else."""
    first = [(1, header), *islice(rows, SAMPLE_ROWS)]
    exhausted = len(first) <= SAMPLE_ROWS
    start = Place() if options.as_is else find_table([cells for _, cells in first])
    top = start.skip + start.header
    names = joined_names([cells for _, cells in first[start.skip : top]])
    check_names(sheet.place, names, ids)
    of_ids = id_columns(ids, names)
    features = options.wanted(without(names, of_ids), sheet.place, FileError)
    sample = first[top:]
    told = sample
    if exhausted and not options.as_is:
        told = sample[: len(without_end([cells for _, cells in sample]))]
    columns = {
        name: [cells[j] for _, cells in told if len(cells) > j]
        for j, name in enumerate(names)
        if name in features
    }
    try:
        found = find_forms(columns, options, "", of_ids)
    except UndecidedError as error:
        j = names.index(error.column)
        row = next(n for n, cells in told if len(cells) > j and cells[j] == error.cell)
        raise error.at(f"{sheet.place}, row {row}") from None
    numbers, others = set[str](), dict[str, tuple[int, Any]]()
    for number, cells in told:
        for name, cell in zip(names, cells, strict=False):
            if name in found.forms and isinstance(cell, str):
                continue
            if isinstance(cell, int | float | time | timedelta):  # a flag is one, too
                numbers.add(name)
            elif not _is_empty(cell, options.markers):
                others.setdefault(name, (number, cell))
    for name in features:
        if name in numbers and name in others and not options.is_coded(name):
            raise _not_a_number(sheet.place, others[name][0], name, others[name][1])
    texts = {name for name, form in found.forms.items() if form.is_text}
    coded = [name for name in features if name in {*others, *texts} or options.is_coded(name)]
    codes = codes_of(coded, sheet.place, options)
    declare_codes(codes, found.forms)
    rest = chain(sample, rows)  # so that the sheet is read once
    cleaned = [*start.told, *found.told.values()]
    table = _Table(
        sheet, rest, names, features, of_ids, codes, options.markers, found.forms, cleaned,
        options.as_is,
    )  # fmt: skip
    dropped = without(names, (*features, *of_ids))

    def batches(_: Any) -> Iterator[Batch]:
        with closing(sheet):
            yield from table.batches()

    return FileView(
        Batches(batches),
        features=features,
        codes=codes,
        dropped=dropped,
        cleaning={name: str(form) for name, form in found.forms.items()},
        cleaned=cleaned,
    )


@dataclass(frozen=True)
class _Table:
    """A sheet whose columns are known."""

    sheet: _Sheet
    rows: Rows
    names: list[str]
    features: tuple[str, ...]
    ids: tuple[str, ...]  # the column of ids, or those whose cells are joined
    codes: dict[str, Codes]
    markers: frozenset[str]
    forms: Mapping[str, Form]
    cleaned: list[str]
    as_is: bool

    def batches(self) -> Iterator[Batch]:
        budget, place = Budget(self.sheet.file), self.sheet.place
        place_of = {name: j for j, name in enumerate(self.names)}
        numeric = [at for at, name in enumerate(self.features) if name not in self.codes]
        found, totals = False, Totals(len(numeric))
        size, held = batch_rows(len(self.names)), next(self.rows, None)
        while held is not None:
            block = [held, *islice(self.rows, size - 1)]
            held = next(self.rows, None)
            found = True
            while held is None and not self.as_is and len(block) > 1 and is_remark(block[-1][1]):
                if len(self.names) < FEWEST_COLUMNS:
                    break
                self.cleaned.append(f"left out row {block.pop()[0]}, a remark below the table")
            if held is None and not self.as_is and numeric:  # the last row may hold totals
                block = self._without_totals(block, totals, [self.features[at] for at in numeric])
                if not block:
                    continue
            budget.spool(8 * len(block) * len(self.features), "its rows")
            for number, cells in block:
                if len(cells) > len(self.names):
                    raise FileError(
                        f"{place}, row {number}: {len(cells)} cells where the first row has "
                        f"{len(self.names)}. Name every column, or empty the cells."
                    )
            matrix = np.column_stack(
                [self._column(block, name, place_of[name]) for name in self.features]
            )
            totals.add(matrix[:, numeric])
            known = None
            if self.ids:
                # Excel has no other numbers than floating-point ones.
                texts = [
                    [
                        id_of_cell(place, f"row {row}", _as_whole(c[at] if at < len(c) else None))
                        for row, c in block
                    ]
                    for at in map(place_of.__getitem__, self.ids)
                ]
                known = ids_of_text(join_ids(texts))
            yield known, matrix
        if not found:
            raise FileError(f"{place}: there are columns, but no rows. Leave the view out.")

    def _without_totals(
        self, block: list[tuple[int, tuple[Any, ...]]], before: Totals, names: list[str]
    ) -> list[tuple[int, tuple[Any, ...]]]:
        """Return the last rows of the sheet without one of totals."""
        place = {name: j for j, name in enumerate(self.names)}
        at, forms = [place[name] for name in names], [*map(self.forms.get, names)]

        def number(cells: tuple[Any, ...], j: int) -> float:
            return loose_number(cells[at[j]] if at[j] < len(cells) else None, forms[j])

        def above(j: int) -> Array:
            return np.array([number(cells, j) for _, cells in block[:-1]])

        last = np.array([number(block[-1][1], j) for j in range(len(names))])
        if not before.are_in(last, above):
            return block
        self.cleaned.append(f"row {block[-1][0]} holds totals and is left out")
        return block[:-1]

    def _column(self, block: list[tuple[int, tuple[Any, ...]]], name: str, j: int) -> Array:
        """Return numbers for the cells of the column of this name, which is number j."""
        held = [(number, cells[j] if j < len(cells) else None) for number, cells in block]
        values = [None if _is_empty(cell, self.markers) else plain_value(cell) for _, cell in held]
        if (form := self.forms.get(name)) is not None:
            values = [self._formed(form, value) for value in values]
        if name in self.codes:
            kinds = {isinstance(value, date) for value in values if value is not None}
            dates = kinds == {True} and self.codes[name].kind in (None, "date")
            return self.codes[name](Cells.of_dates(values) if dates else Cells.of(values))
        for (number, _), value in zip(held, values, strict=True):
            if not isinstance(value, int | float | None):
                raise _not_a_number(self.sheet.place, number, name, value)
            if value is not None and not abs(value) <= sys.float_info.max and value == value:
                raise too_large(f"{self.sheet.place}, row {number}, column {name!r}", str(value))
        return np.array(values, dtype=np.float64)

    def _formed(self, form: Form, value: Any) -> Any:
        if not isinstance(value, str) or (text := form.rewrite(value)) is None or form.is_text:
            whole = form.is_text and isinstance(value, str) and form.kind == "date"
            return datetime.fromisoformat(form.rewrite(value) or value) if whole else value
        return float(text) if text else None


def _not_a_number(place: str, row: int, name: str, cell: Any) -> FileError:
    return FileError(
        f"{place}, row {row}, column {name!r}: {str(cell)[:40]!r} is not a number. Correct or "
        "impute it; of a sample that the view lacks, leave all cells empty."
    )


def _as_whole(cell: Any) -> Any:
    whole = isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53
    return int(cell) if whole else cell


def _is_empty(cell: Any, markers: frozenset[str]) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip() in markers)


# -- a look at the archive


def _check_archive(file: str, stream: IO[bytes]) -> bool:
    """Refuse macros, definitions of entities, and what is too large, before anything is parsed.

    Returns whether there are formulas.
    """
    text, whole = Budget(file), Budget(file)
    formulas = False
    with zipfile.ZipFile(stream) as archive:
        # Python's zipfile reads no more of a member than this, whatever it holds.
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        if len(sizes) != len(archive.infolist()):
            raise FileError(f"{file}: two parts have the same name. Save the workbook again.")
        whole.hold(_PER_BYTE * sizes.get(_TYPES, 0), _TYPES)
        _check_markup(file, _TYPES, archive)
        streamed = _sheets(archive.read(_TYPES))
        for name, size in sizes.items():
            if name.lower().endswith("vbaproject.bin"):
                raise FileError(f"{file}: it holds macros. Save it as a workbook without them.")
            if name in streamed:
                text.unpack(size, f"the sheet {name}")
            else:
                whole.hold(_PER_BYTE * size, name)
            formulas |= _check_markup(file, name, archive)
    return formulas


def _sheets(types: bytes) -> set[str]:
    """Return the parts that are sheets and nothing else: only these are read row by row."""
    found = [(one.get("PartName", ""), one.get("ContentType", "")) for one in fromstring(types)]
    many = Counter(part for part, _ in found)
    sheets = [part for part, kind in found if kind.endswith("worksheet+xml")]
    return {part.lstrip("/") for part in sheets if many[part] == 1}


def _check_markup(file: str, name: str, archive: zipfile.ZipFile) -> bool:
    """Refuse markup that defines anything; return whether it holds formulas."""
    last, formulas, markup = b"", False, name.endswith((".xml", ".rels"))
    rows, cells = 0, 0
    with archive.open(name) as stream:
        while piece := stream.read(2**20):
            markup = markup or piece.lstrip(b"\xff\xfe\xef\xbb\xbf\0 \r\n\t")[:1] == b"<"
            if not markup:
                return False  # a picture, for instance
            if b"\0" in piece or b"<!DOCTYPE" in last + piece:
                raise FileError(f"{file}: {name} is not as spreadsheet programs write it.")
            formulas = formulas or _FORMULA.search(last + piece) is not None
            # openpyxl passes over rows that repeat a number, and builds a row as a whole: millions
            # of either take minutes, or gigabytes, before it gives the first one.
            first, *others = _ROW.split(piece)
            many = [len(_CELL.findall(part)) for part in others]
            cells += len(_CELL.findall(first))
            rows += len(others)
            if rows > MOST_ROWS or max(cells, *many, 0) > MOST_COLUMNS:
                raise FileError(f"{file}: {name} has more rows or columns than Excel has.")
            cells = many[-1] if many else cells
            last = piece[-16:]
    return formulas
