"""Excel workbooks (.xlsx): every sheet is a table, with names in its first row.

openpyxl reads them row by row, so that no sheet is ever held as a whole, as pandas would. It is
asked only after the archive was looked at: sizes, macros, definitions that would unfold in memory.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import chain, count, islice
from typing import IO, Any
from xml.etree.ElementTree import fromstring

import numpy as np

from viewfold._util.file import ReadOptions
from viewfold._util.messages import format_names
from viewfold.data.cleaning import SAMPLE_ROWS
from viewfold.data.guard import Budget
from viewfold.data.source import FileError, FileView, batch_rows, optional, reading
from viewfold.data.tables import Blocks, Layout, Row, find_layout, open_table

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

    def rows(self) -> Iterator[Row]:
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
        ((sheet, header),) = full.items()
        return {"": _view(sheet, header, rows[sheet], ids, options)}
    views = {}
    for sheet, header in full.items():
        own = options.in_file(sheet.name)
        try:
            views[sheet.name] = _view(sheet, header, rows[sheet], ids, own)
        except FileError as error:
            raise FileError(f"{error} Or choose other sheets with sheet=….") from None
    return views


def _view(
    sheet: _Sheet, header: Row, rows: Iterator[Row], ids: str | None, options: ReadOptions
) -> FileView:
    first = [header, *islice(rows, SAMPLE_ROWS)]
    whole = len(first) <= SAMPLE_ROWS
    layout = find_layout(sheet.place, "row", first, ids, options, whole=whole)
    below = chain(first[layout.top :], rows)  # so that the sheet is read once
    return open_table(layout, _blocks(sheet, layout, below), sheet.file)


def _blocks(sheet: _Sheet, layout: Layout, rows: Iterator[Row]) -> Blocks:
    width = len(layout.names)
    empty = True
    with closing(sheet):
        while held := list(islice(rows, batch_rows(width))):
            table = np.full((len(held), width), None, object)
            for i, (number, cells) in enumerate(held):
                if len(cells) > width:
                    raise FileError(
                        f"{layout.at(number)}: {len(cells)} cells where the first row has {width}. "
                        "Name every column, or empty the cells."
                    )
                table[i, : len(cells)] = cells
            yield [number for number, _ in held], table
            empty = False
    if empty:
        raise FileError(f"{sheet.place}: there are columns, but no rows. Leave the view out.")


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
