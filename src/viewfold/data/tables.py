"""Tables of cells become numbers: rows of a CSV, whose cells are texts, or of an Excel sheet.

The first rows tell where the table begins and how each column is written (`find_layout`); from then
on a cell that is written in another way is an error with its place, and no guess changes half-way.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from viewfold._util.file import ReadOptions
from viewfold._util.types import Array
from viewfold.data.arrays import Batches
from viewfold.data.cleaning import (
    FEWEST_COLUMNS,
    Form,
    Place,
    Totals,
    UndecidedError,
    declare_codes,
    find_forms,
    find_table,
    is_filled,
    is_remark,
    joined_names,
    loose_number,
    mark_last,
    plain_value,
    without_end,
)
from viewfold.data.codes import Cells, Codes, codes_of
from viewfold.data.guard import Budget
from viewfold.data.numbers import NotANumberError, Numerals, hint, is_too_large, not_a_number
from viewfold.data.source import (
    Batch,
    FileError,
    Table,
    check_names,
    check_present,
    id_columns,
    id_of_cell,
    ids_of_text,
    join_ids,
    too_large,
    without,
)

CellKind: TypeAlias = Literal["number", "flag", "text"]
Row: TypeAlias = tuple[int, Sequence[Any]]  # the number of a row, and its cells
Block: TypeAlias = tuple[Sequence[int], Array]  # numbers of rows, and a matrix of cells
Blocks: TypeAlias = Generator[Block, None, None]

LOOKED_AT = 100  # rows that tell where the table begins
_BOOLEAN = {"true": "1", "True": "1", "TRUE": "1", "false": "0", "False": "0", "FALSE": "0"}


@dataclass(frozen=True)
class Layout:
    """How a table is written, as its first rows tell."""

    place: str  # how errors call the file, or the sheet of it
    row: str  # how they call a row: a line, or a row
    typed: bool  # whether cells may have types of their own
    names: tuple[str, ...]
    named: bool  # whether the table has these names
    top: int  # how many rows are above the first sample
    ids: tuple[str, ...]  # the column of ids, or those whose cells are joined
    kinds: Mapping[str, CellKind]  # of the columns that are read
    numerals: Numerals
    cleaning: Mapping[str, Form]  # how columns are written, to be remembered
    forms: Mapping[str, Form]  # those of columns that are rewritten before they are read
    cleaned: list[str]  # what was done to the table, for people
    left_out: list[int]  # columns without a name or cells
    options: ReadOptions

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(name for name in self.kinds if name not in self.ids)

    def at(self, number: int, name: str = "") -> str:
        """Return how errors call a row, or the cell of a column in it."""
        return f"{self.place}, {self.row} {number}" + (f", column {name!r}" if name else "")


def find_layout(
    place: str,
    row: str,
    rows: Sequence[Row],
    ids: str | None,
    options: ReadOptions,
    *,
    whole: bool,
    delimiter: str | None = None,
) -> Layout:
    """Tell from the first rows, or all if these are the `whole` table, how columns are written.

    The rows of a text have a delimiter; those of a sheet have none, and names at the top.
    """
    as_is, typed = options.as_is, delimiter is None
    start = Place() if as_is else find_table([cells for _, cells in rows[:LOOKED_AT]])
    top = start.skip + start.header
    names = joined_names([cells for _, cells in rows[start.skip : top]])
    named = typed or start != Place() or _is_header(names, ids, options)
    if not named:
        names, top = [f"column{i}" for i in range(len(names))], 0
    sample = [(number, cells) for number, cells in rows[top:] if len(cells)]
    # A delimiter at the end of each line makes a column without a name and cells.
    empty = [
        j
        for j, name in enumerate(names)
        if not (
            as_is
            or name
            or not j
            or any(is_filled(cells[j]) for _, cells in sample if len(cells) > j)
        )
    ]
    names = [f"column {j + 1}" if j in empty else name for j, name in enumerate(names)]
    check_names(place, names, ids)
    if whole and not as_is:
        sample = sample[: len(without_end([cells for _, cells in sample]))]
    of_ids = id_columns(ids, names)
    usable = [name for j, name in enumerate(names) if name not in of_ids and j not in empty]
    wanted = set(options.wanted(usable, place, FileError))
    cells = {
        name: [(number, held[j]) for number, held in sample if len(held) > j]
        for j, name in enumerate(names)
        if name in wanted
    }
    raw = {name: [cell for _, cell in held] for name, held in cells.items()}
    try:
        found = find_forms(raw, options, delimiter or "", of_ids)
    except UndecidedError as error:
        number = next(at for at, cell in cells[error.column] if cell == error.cell)
        raise error.at(f"{place}, {row} {number}") from None
    forms = dict(found.forms)
    # A number that has a type needs no sign, and forms say how texts are written.
    numerals = Numerals() if typed else _common_numerals(forms, raw)
    if numerals is None:
        said = options.decimal is not None or options.thousands is not None
        decimal = options.decimal or ("," if options.thousands == "." else found.decimal or ".")
        # Semicolons are there where commas are decimal signs: a point may be a separator.
        unsure = delimiter == ";" and not said and not found.decimal
        numerals = Numerals(decimal, options.thousands, unsure, not said and bool(found.decimal))
    kinds: dict[str, CellKind] = {}
    for name in names:
        if name in forms:
            kinds[name] = "text" if forms[name].is_text else "number"
        elif name in of_ids or (name in wanted and options.is_coded(name)):
            kinds[name] = "text"
        elif name in wanted:
            plain = name in found.plain
            kinds[name] = (
                "number" if plain else _kind(place, row, name, cells[name], numerals, options)
            )
    return Layout(
        place=place,
        row=row,
        typed=typed,
        names=tuple(names),
        named=named,
        top=top,
        ids=of_ids,
        kinds=kinds,
        numerals=numerals,
        cleaning=found.forms,
        forms=forms,
        cleaned=[
            *start.told,
            *(f"left out {names[j]}, which is empty" for j in empty),
            *(found.told[name] for name in forms),
        ],
        left_out=empty,
        options=options,
    )


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
        ways.append(Numerals(options.decimal or ".", options.thousands))
    return not any(
        all(cell in options.markers or way.can_read(cell) for cell in cells) for way in ways
    )


def _common_numerals(
    forms: dict[str, Form], columns: Mapping[str, Sequence[str]]
) -> Numerals | None:
    """Return how all numbers without units are written, if in one way; their forms are removed.

    So a file with decimal commas is read as fast as one with points.
    """
    bare = {}
    for name, form in forms.items():
        if form.kind == "number":
            way = Numerals(form.detail[0], form.detail[1:] or None, met=True)
            if all(way.can_read(cell) or not cell.strip() for cell in columns[name]):
                bare[name] = way
    if len(set(bare.values())) != 1:
        return None
    way, usual = next(iter(bare.values())), Numerals(".")
    for name, held in columns.items():
        if name not in forms and any(usual.can_read(c) and not way.can_read(c) for c in held):
            return None
    for name in bare:
        del forms[name]
    return way


def _kind(
    place: str,
    row: str,
    name: str,
    cells: Sequence[tuple[int, Any]],
    numerals: Numerals,
    options: ReadOptions,
) -> CellKind:
    """Return what the cells of a column are, given with the numbers of their rows."""
    found: dict[str, tuple[int, str]] = {}
    for number, cell in cells:
        text = _as_text(cell)
        if text in options.markers:
            continue
        kind = "flag" if text in _BOOLEAN else "number" if numerals.can_read(text) else "text"
        found.setdefault(kind, (number, text))
        if kind == "text" and hint(text)[0]:
            found.setdefault("number", (number, text))  # it is meant as one
    if "text" not in found:
        return "flag" if "flag" in found and "number" not in found else "number"
    if "number" not in found:
        return "text"
    number, text = found["text"]
    raise not_a_number(f"{place}, {row} {number}, column {name!r}", name, text, numerals)


def _as_text(cell: Any) -> str:
    """Return a cell as a text, as which its number would be written in a file of text."""
    if isinstance(cell, str):
        return cell
    if cell is None:
        return ""
    cell = plain_value(cell)
    if isinstance(cell, float) and np.isinf(cell):  # which no cell can be: it is too large
        return "1e999"
    whole = isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53
    return str(int(cell) if whole else cell)


# -- all rows


def open_table(layout: Layout, blocks: Blocks, file: str) -> Table:
    """Return a table whose blocks of rows are read when they are asked for."""
    codes = codes_of(
        (name for name in layout.features if layout.kinds[name] == "text"),
        layout.place,
        layout.options,
    )
    declare_codes(codes, layout.forms)
    nameless = {layout.names[j] for j in layout.left_out}
    return Table(
        Batches(lambda _: _batches(layout, blocks, codes, Budget(file))),
        # Features of categories are called like the columns that they come from.
        features=layout.features if layout.named or codes else None,
        codes=codes,
        dropped=without(layout.names, {*layout.kinds, *layout.ids, *nameless}),
        cleaning={name: str(form) for name, form in layout.cleaning.items()},
        cleaned=layout.cleaned,
    )


def _batches(
    layout: Layout, blocks: Blocks, codes: dict[str, Codes], budget: Budget
) -> Iterator[Batch]:
    column = {name: j for j, name in enumerate(layout.names)}
    features, markers = layout.features, layout.options.markers
    numeric = [at for at, name in enumerate(features) if layout.kinds[name] != "text"]
    numbers = [column[features[at]] for at in numeric]
    totals = Totals(len(numbers))
    with closing(blocks):
        for rows, table, last in mark_last(blocks):
            # A packed file of commas is small: every cell takes time and room.
            budget.spool(8 * len(rows) * len(features), "its rows")
            if not layout.options.as_is:
                rows, table = _without_blank(layout, rows, table, last)
                if last and len(table) and _ends_in_totals(layout, table, numbers, totals):
                    layout.cleaned.append(f"{layout.row} {rows[-1]} holds totals and is left out")
                    rows, table = rows[:-1], table[:-1]
            if layout.left_out and any(map(is_filled, table[:, layout.left_out].ravel())):
                raise FileError(f"{layout.place}: a column without a name holds values. Name it.")
            for name, form in layout.forms.items():
                j = column[name]
                table[:, j] = form.rewrite_all(table[:, j].tolist(), markers)
            for name in features:
                cells, j = table[:, column[name]], column[name]
                if layout.typed:
                    table[:, j] = [_as_text(cell).strip() for cell in cells]
                if layout.kinds[name] == "flag":
                    table[:, j] = [_BOOLEAN.get(cell, cell) for cell in table[:, j].tolist()]
            matrix = np.empty((len(rows), len(features)))
            matrix[:, numeric] = _numbers(layout, rows, table, numbers)
            totals.add(matrix[:, numeric])
            for at, name in enumerate(features):
                if name in codes:
                    matrix[:, at] = codes[name](Cells.of(table[:, column[name]].tolist()))
            known = [_ids(layout, rows, table[:, column[name]].tolist()) for name in layout.ids]
            yield ids_of_text(join_ids(known)) if known else None, matrix


def _ids(layout: Layout, rows: Sequence[int], cells: list[Any]) -> list[str]:
    if layout.typed:
        # Excel has no other numbers than floating-point ones.
        whole = (
            int(cell)
            if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53
            else cell
            for cell in cells
        )
        cells = [
            id_of_cell(layout.place, f"{layout.row} {row}", cell)
            for row, cell in zip(rows, whole, strict=True)
        ]
    check_present(layout.place, cells, lambda at: f"{layout.row} {rows[at]}")
    return cells


def _without_blank(layout: Layout, rows: Sequence[int], table: Array, last: bool) -> Block:
    """Return rows without those that are blank, and the table without remarks below it."""
    if table.shape[1] < FEWEST_COLUMNS:
        return rows, table
    blank = np.flatnonzero(~table[:, : FEWEST_COLUMNS - 1].astype(bool).any(axis=1))
    gone = {i for i in blank.tolist() if not any(map(is_filled, table[i]))}
    n = len(table)
    while last and n > 1 and is_remark(table[n - 1]):
        n -= 1
        gone.add(n)
    if not gone:
        return rows, table
    told = "left out rows that are blank, or a remark below the table"
    if told not in layout.cleaned:
        layout.cleaned.append(told)
    keep = [i for i in range(len(table)) if i not in gone]
    return [rows[i] for i in keep], table[keep]


def _ends_in_totals(layout: Layout, table: Array, numbers: list[int], totals: Totals) -> bool:
    usual = Form("number", layout.numerals.decimal + (layout.numerals.thousands or ""))
    forms = [layout.forms.get(layout.names[j], usual) for j in numbers]
    row = [loose_number(table[-1, j], form) for j, form in zip(numbers, forms, strict=True)]

    def above(at: int) -> Array:
        cells = table[:-1, numbers[at]].tolist()
        return np.array([loose_number(cell, forms[at]) for cell in cells])

    return totals.are_in(np.array(row), above)


def _numbers(layout: Layout, rows: Sequence[int], table: Array, columns: list[int]) -> Array:
    """Return the cells of some columns as numbers."""
    formed = [j for j in columns if layout.names[j] in layout.forms]
    if formed and len(formed) < len(columns):  # these are written with points now
        found = np.empty((len(table), len(columns)))
        of_forms = np.isin(columns, formed)
        rest = [j for j in columns if j not in set(formed)]
        found[:, of_forms] = _numbers(layout, rows, table, formed)
        found[:, ~of_forms] = _numbers(layout, rows, table, rest)
        return found
    numerals = Numerals(".", met=True) if formed else layout.numerals
    cells: list[str] = table[:, columns].ravel().tolist()

    def place(at: int) -> tuple[str, str]:
        i, j = divmod(at, len(columns))
        name = layout.names[columns[j]]
        return layout.at(rows[i], name), name

    try:
        found = numerals.numbers(cells, layout.options.markers)
    except NotANumberError as error:
        raise not_a_number(*place(error.at), error.cell, numerals) from None
    for at in np.flatnonzero(np.isinf(found)):
        if is_too_large(cells[at], found[at]):
            raise too_large(place(int(at))[0], cells[at].strip())
    return found.reshape(len(table), len(columns))
