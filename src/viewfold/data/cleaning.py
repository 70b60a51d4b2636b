"""What people export becomes what they mean, before it is read: rows, columns, ids.

`find_table` finds the names of columns below titles, `find_forms` how each column is written, and
`Totals` a last row of sums. A form is decided by all cells that are looked at, never by one; what
cannot be decided is an error with the options to choose from. Every cleaning is told, is remembered
for the view, and is undone by ``as_is=True``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from functools import lru_cache
from typing import Any

import numpy as np

from viewfold._util.file import SPACES, ReadOptions
from viewfold._util.messages import with_suggestion
from viewfold._util.types import Array
from viewfold.data.id_columns import may_be_called_id
from viewfold.data.source import FileError

SAMPLE_ROWS = 2000  # rows that tell how columns are written; later ones have to fit
FEWEST_COLUMNS = 3  # of a table in which a row with one cell is a remark
MOST_LOOKED_AT = 200  # columns that tell where a table begins
FEW = 5  # rows: fewer have no row of totals
FEWEST_ROWS = 20  # whole numbers that are all different in fewer rows may be measurements
MIXED = 30  # cells such as 1,107, beside others below 1000, that make the sign one of thousands

# -- how a cell may be written

_SIGN = r"[+\-\u2212\u2013]?"
_CODES = "EUR|USD|GBP|CHF|JPY|CNY|INR|KRW|CAD|AUD|NZD|BRL|MXN|SEK|NOK|DKK|PLN|CZK|HUF|RON|RUB|TRY"
_MONEY = rf"(?:[€$£¥₽₺₹]|R\$|kr\.?|zł|Kč|Ft|{_CODES})"
_CORE = r"(?:\d[\d.,'’_ \u00a0\u202f\u2009]*\d|\d|[.,]\d+|\d+[.,])(?:[eE][+-]?\d+)?"
# A unit without a space begins with a small letter: 1A and 2A are names of rooms.
_MORE = r"[\w/µμ²³^.·*-]{0,9}"
_UNIT = rf"(?:[%‰]|{_MONEY}|°[CF]?|[a-zµμ]{_MORE}|(?<=[ \u00a0])[A-Zµμ°Ω]{_MORE})"
_QUANTITY = re.compile(
    rf"(?P<open>\()?(?P<s1>{_SIGN})\s*(?P<before>{_MONEY}?)\s*(?P<s2>{_SIGN})(?P<core>{_CORE})"
    rf"\s*(?P<unit>{_UNIT}?)(?P<close>\))?(?P<s3>-?)"
)
_PLAIN = re.compile(
    r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf|infinity)", re.I
)
_PLAIN_LETTERS = b"0123456789+-eE. \t"
_PADDED = re.compile(r"0\d+")
_DATE = re.compile(
    r"(\d{1,4})([./-])(\d{1,2})\2(\d{4}|\d{2})(?:[T ](\d{1,2}:\d{2}(?::\d{2})?)(?:\.\d+)?)?"
)
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[ T].*)?")
_CLOCK = re.compile(r"(\d+):([0-5]\d)(?::([0-5]\d)(?:[.,](\d+))?)?")
_PART = r"(\d+(?:[.,]\d+)?)\s*(d|days?|Tage?|h|hrs?|hours?|Std\.?|min|m|mins?|s|secs?|sek)\.?"
_PARTS = re.compile(rf"{_PART}(?:\s*{_PART})+", re.IGNORECASE)
_SECONDS = {"d": 86400, "t": 86400, "h": 3600, "m": 60, "s": 1}
_YES_NO = (
    *(("yes", "no"), ("y", "n"), ("ja", "nein"), ("j", "n"), ("oui", "non"), ("o", "n")),
    *(("sí", "no"), ("si", "no"), ("sì", "no"), ("s", "n"), ("tak", "nie"), ("t", "n")),
    *(("ja", "nee"), ("ja", "nej"), ("sim", "não"), ("sim", "nao"), ("ano", "ne"), ("da", "nu")),
    *(("kyllä", "ei"), ("igen", "nem"), ("evet", "hayır"), ("да", "нет"), ("是", "否")),
    *(("wahr", "falsch"), ("vrai", "faux"), ("verdadero", "falso"), ("vero", "falso")),
)
# What people write in other languages than English where there is no value.
_NO_VALUES = """
k.a., k. a., keine angabe, unbekannt, leer, n.v., n.v.t., nvt, onbekend, unknown, missing, n.d.,
n.c., non disponible, inconnu, inconnue, vide, s/d, s.d., sin dato, sin datos, desconocido, b.d.,
b/d, brak, brak danych, nieznany, sconosciuto
"""
_NO_VALUE = frozenset(word.strip() for word in _NO_VALUES.split(","))


class UndecidedError(FileError):
    """Cells that can be read in two ways; `choices` has the options that say which."""

    def __init__(self, said: str, column: str, cell: str, *choices: Mapping[str, Any]) -> None:
        super().__init__(f"{said} Say which.")
        self.column, self.cell, self.choices = column, cell, choices
        self.options = choices[0]

    def at(self, place: str) -> UndecidedError:
        """Return the error with the place of the cell."""
        self.args = (f"{place}, column {self.column!r}: {self}",)
        return self


@dataclass(frozen=True)
class Form:
    """How the cells of a column are written; `rewrite` returns them as viewfold reads them.

    ``number`` has the decimal sign and that of thousands as detail, ``date`` the order (dmy, mdy,
    ymd). A ``code`` is digits that are a name, such as 00123.
    """

    kind: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.detail}"

    @classmethod
    def of(cls, text: str) -> Form:
        return cls(*text.partition(":")[::2])

    def rewrite(self, cell: str) -> str | None:
        """Return a cell as a number, an ISO date or as it is; None if it is not written so."""
        bare = cell.strip()
        if self.kind == "code":
            return cell
        if bare.casefold() in _NO_VALUE:
            return ""
        if self.kind == "number":
            return _number(bare, self.detail[:1], self.detail[1:])
        if self.kind == "date":
            return _date(bare, self.detail)
        if self.kind == "duration":
            return _duration(bare)
        yes, no = self.detail.split("/")
        return {yes: "1", no: "0", "1": "1", "0": "0"}.get(bare.casefold())

    def rewrite_all(self, cells: Iterable[Any], empty: frozenset[str]) -> list[Any]:
        """Return all cells; one that is not written so stays, and its reader complains."""
        seen: dict[str, str] = {}

        def one(cell: Any) -> Any:
            if not isinstance(cell, str) or cell in empty:
                return cell
            if cell not in seen:
                found = self.rewrite(cell)
                seen[cell] = cell if found is None else found
            return seen[cell]

        return [one(cell) for cell in cells]

    @property
    def is_text(self) -> bool:
        """Whether what it gives is not numbers: a date or a code."""
        return self.kind in ("date", "code")

    def told(self, name: str, example: str) -> str:
        """Return what is done to a column, for people."""
        found = self.rewrite(example)
        if self.kind == "code":
            return f"{name!r} ({example!r}) is no measurement but names things"
        if self.kind == "flag":
            yes, no = self.detail.split("/")
            return f"{name!r}: {yes!r} is 1, {no!r} is 0"
        seconds = " seconds" if self.kind == "duration" else ""
        return f"{name!r}: {example.strip()!r} is {found}{seconds}"


PLAIN = Form("number", ".")  # nothing has to be rewritten


@lru_cache(maxsize=8)
def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    signs = SPACES if thousands in SPACES else thousands
    whole = rf"\d{{1,3}}(?:[{re.escape(signs)}]\d{{3}})+|\d+" if thousands else r"\d+"
    sign = re.escape(decimal)
    return re.compile(rf"(?:(?:{whole})(?:{sign}\d*)?|{sign}\d+)(?:[eE][+-]?\d+)?")


def _number(bare: str, decimal: str, thousands: str) -> str | None:
    found = _QUANTITY.fullmatch(bare)
    if not found or bool(found["open"]) != bool(found["close"]):
        return bare if bare.lower() in ("nan", "inf", "-inf") else None
    core = found["core"]
    if not _pattern(decimal, thousands).fullmatch(core):
        return None
    for sign in SPACES if thousands and thousands in SPACES else thousands:
        core = core.replace(sign, "")
    signs = [one for one in (found["s1"], found["s2"], found["s3"]) if one]
    if len(signs) > 1:
        return None
    minus = bool(found["open"]) or (bool(signs) and signs[0] != "+")
    return "-" * minus + core.replace(decimal, ".")


def _date(bare: str, order: str) -> str | None:
    found = _DATE.fullmatch(bare)
    if not found:
        return bare if _ISO.fullmatch(bare) else None
    part = dict(zip(order, (found[1], found[3], found[4]), strict=True))
    year = int(part["y"])
    if len(part["y"]) == 2:
        year += 2000 if year < 70 else 1900
    elif len(part["y"]) != 4:
        return None
    try:
        day = date(year, int(part["m"]), int(part["d"])).isoformat()
    except ValueError:
        return None
    return f"{day} {found[5].zfill(5 if found[5].count(':') == 1 else 8)}" if found[5] else day


def _duration(bare: str) -> str | None:
    if found := _CLOCK.fullmatch(bare):
        a, b, c, part = found.groups()
        seconds = int(a) * 60 + int(b) if c is None else int(a) * 3600 + int(b) * 60 + int(c)
        return f"{seconds}.{part}" if part else str(seconds)
    if not _PARTS.fullmatch(bare):
        return None
    parts = re.findall(_PART, bare, re.IGNORECASE)
    total = sum(float(n.replace(",", ".")) * _SECONDS[unit[0].lower()] for n, unit in parts)
    return f"{total:g}"


def plain_value(value: Any) -> Any:
    """Return a cell of a spreadsheet that holds a time or a duration in seconds."""
    if isinstance(value, time):
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    return value.total_seconds() if isinstance(value, timedelta) else value


# -- where the table is


@dataclass(frozen=True)
class Place:
    """Where a table begins: rows above its names, and rows of names."""

    skip: int = 0
    header: int = 1

    @property
    def told(self) -> list[str]:
        rows = "1 row" if self.skip == 1 else f"{self.skip} rows"
        found = [f"left out {rows} above the names of columns"] * bool(self.skip)
        return found + ["two rows of names are joined"] * (self.header > 1)


def find_table(rows: Sequence[Sequence[Any]]) -> Place:
    """Find titles, and a second row of names or units, in the first rows of a file."""
    rows = [row[:MOST_LOOKED_AT] for row in rows]
    filled = [sum(is_filled(cell) for cell in row) for row in rows]
    typical = float(np.median(filled)) if filled else 0
    if typical < 3 or len(rows) < 3:
        return Place()
    skip = 0
    while skip + 2 < len(rows) and _is_title(rows, filled, skip, typical):
        skip += 1
    body = rows[skip + 2 :]
    width = len(rows[skip])
    numbers = [j for j in range(width) if _are_numbers([row[j] for row in body if len(row) > j])]
    second = rows[skip + 1]
    held = [second[j] for j in numbers if len(second) > j and is_filled(second[j])]
    texts = [cell for cell in held if isinstance(cell, str) and not _is_value(cell)]
    is_second = bool(texts) and len(texts) == len(held) and 2 * len(held) >= len(numbers)
    return Place(skip, 2 if is_second else 1)


def _is_title(
    rows: Sequence[Sequence[Any]], filled: Sequence[int], at: int, typical: float
) -> bool:
    if filled[at] <= 1 or filled[at + 1] == 0:
        return filled[at] < typical / 2
    where = [j for j, cell in enumerate(rows[at]) if is_filled(cell)]
    return where == [0, 1] and typical > 4  # a word and its value, such as a date of the report


def joined_names(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return the names of columns from one or two rows of them."""
    texts = [["" if cell is None else str(cell).strip() for cell in row] for row in rows]
    if len(texts) == 1:
        return texts[0]
    width = max(map(len, texts))
    above, below = (row + [""] * (width - len(row)) for row in texts)
    group, spans = "", not all(above) or len(set(above)) < len(above)
    names = []
    for top, name in zip(above, below, strict=True):
        group = (top or group) if spans else top
        names.append(f"{group} {name}".strip() if name else top)
    return names


def is_filled(cell: Any) -> bool:
    return cell is not None and (not isinstance(cell, str) or bool(cell.strip()))


def _is_value(cell: Any) -> bool:
    """Whether a cell looks like a value, not like a name."""
    if not isinstance(cell, str):
        return True
    bare = cell.strip()
    return any(
        pattern.fullmatch(bare) for pattern in (_PLAIN, _QUANTITY, _DATE, _ISO, _CLOCK, _PARTS)
    )


def _are_numbers(cells: Sequence[Any]) -> bool:
    held = [cell for cell in cells if is_filled(cell)]
    return len(held) > 1 and sum(map(_is_value, held)) >= 0.8 * len(held)


# -- how columns are written


@dataclass(frozen=True)
class Cleaned:
    """How the columns of a table are written, and what people are told of that."""

    forms: Mapping[str, Form] = field(default_factory=dict)
    told: Mapping[str, str] = field(default_factory=dict)  # by column
    plain: Collection[str] = ()  # columns of numbers as Python writes them
    # the decimal sign, if some cell can only be read with it, and none only with another
    decimal: str | None = None


def find_forms(
    columns: Mapping[str, Sequence[Any]],
    options: ReadOptions,
    delimiter: str = "",
    ids: Collection[str] = (),
) -> Cleaned:
    """Decide how each column is written, by all of its cells that are given.

    What was decided for the view before counts, if the cells fit it. Columns that the user names as
    categories or known ones of that kind stay as they are.
    """
    if options.as_is:
        return Cleaned()
    empty = options.markers
    texts = {
        name: [c for c in cells if isinstance(c, str) and c not in empty and c.strip()]
        for name, cells in columns.items()
    }
    known = {name: Form.of(text) for name, text in options.cleaning.items()}
    forms: dict[str, Form] = {}
    plain: set[str] = set()
    unclear: dict[str, set[str]] = {}
    signs: set[str] = set()  # decimal signs that are certain, of all columns
    for name, cells in texts.items():
        coded = options.kind_of(name)
        if not cells or name in ids or (coded == "category" and name not in known):
            continue
        if name in known and _fits(known[name], cells):
            forms[name] = known[name]
            continue
        found = _find_form(name, cells, columns[name], options, delimiter)
        if found is PLAIN:
            plain.add(name)  # its points may be those of thousands: they are no evidence
            continue
        if isinstance(found, Form):
            forms[name] = found
        elif found is not None:
            unclear[name] = found
        if (
            isinstance(found, Form)
            and found.kind == "number"
            and any(found.detail[0] in cell for cell in cells)
        ):
            signs.add(found.detail[0])
    for mark in ".,":
        for name, cells in texts.items():
            open_ = not signs and name not in forms and options.kind_of(name) != "category"
            if open_ and any(mark in cell and _facts(cell) == ("d", mark) for cell in cells):
                signs.add(mark)
    for name, either in unclear.items():
        form = _decide(name, texts[name], either, signs, options, delimiter)
        if form is not None:
            forms[name] = form
    if signs == {","}:  # 1.234 is a thousand there, though it looks like a plain number
        for name, cells in texts.items():
            if name in forms or name in ids or options.kind_of(name) == "category":
                continue
            facts = [_facts(cell) for cell in cells if "." in cell]
            if facts and all(one is not None and one[0] in "et" for one in facts):
                forms[name] = Form("number", ",.")
    told = {
        name: form.told(
            name, next((c for c in texts[name] if _PADDED.fullmatch(c)), texts[name][0])
        )
        for name, form in forms.items()
    }
    return Cleaned(forms, told, plain - forms.keys(), signs.pop() if len(signs) == 1 else None)


def declare_codes(codes: Mapping[str, Any], forms: Mapping[str, Form]) -> None:
    """Let columns of codes keep their zeros: they are texts, whatever they look like."""
    for name, form in forms.items():
        if form.kind == "code" and name in codes:
            codes[name].kind, codes[name].declared = codes[name].kind or "category", True


def _fits(form: Form, cells: Sequence[str]) -> bool:
    return all(form.rewrite(cell) is not None for cell in cells)


def _find_form(
    name: str, cells: list[str], column: Sequence[Any], options: ReadOptions, delimiter: str
) -> Form | set[str] | None:
    """Return the form of a column, the orders or signs between which it is unclear, or None."""
    said = options.decimal is not None or options.thousands is not None
    if not said and _is_plain(cells):
        if _are_codes(name, cells, column, options):
            return Form("code")
        points = [_facts(cell) for cell in cells if delimiter == ";" and "." in cell]
        return {"."} if points and all(one and one[0] == "e" for one in points) else PLAIN
    if _are_codes(name, cells, column, options):
        return Form("code")
    bare = [cell.strip() for cell in cells]
    bare = [cell for cell in bare if cell.casefold() not in _NO_VALUE]
    if len(set(bare)) < 2:
        return None  # one text tells nothing
    words = {cell.casefold() for cell in bare}
    if pair := next((pair for pair in _YES_NO if words == set(pair)), None):
        return Form("flag", "/".join(pair))
    if all(map(_ISO.fullmatch, bare)):
        return None
    if all(map(_DATE.fullmatch, bare)):
        return _date_form(bare, options)
    if all(_CLOCK.fullmatch(cell) or _PARTS.fullmatch(cell) for cell in bare):
        return Form("duration")
    return _number_form(bare, options)


def _is_plain(cells: Sequence[str]) -> bool:
    """Whether all cells are numbers as Python writes them."""
    if "".join(cells).encode(errors="replace").translate(None, _PLAIN_LETTERS):
        return False
    try:
        return all(cell == cell for cell in map(float, cells))
    except ValueError:
        return False


def _are_codes(
    name: str, cells: Sequence[str], column: Sequence[Any], options: ReadOptions
) -> bool:
    """Whether digits are names of things: zeros before them, or all different as numbers of ids."""
    if name in (options.columns or ()) or not all(cell.strip().isdecimal() for cell in cells):
        return False
    if any(_PADDED.fullmatch(cell.strip()) for cell in cells):
        return True
    return len(cells) == len(column) and are_numbered(name, cells)


def are_numbered(name: str, cells: Sequence[str]) -> bool:
    """Whether whole numbers, given as texts, are all different as those of ids are."""
    held = set(cells)
    if len(held) < 0.9 * len(cells) or len(cells) < 2:
        return False
    if may_be_called_id(name):
        return True
    digits = set(map(len, held))
    return len(held) == len(cells) >= FEWEST_ROWS and len(digits) == 1 and min(digits) >= 4


def _date_form(bare: Sequence[str], options: ReadOptions) -> Form | set[str] | None:
    parts = [found for found in map(_DATE.fullmatch, bare) if found]
    if all(len(one[1]) == 4 for one in parts):
        return Form("date", "ymd") if _fits(Form("date", "ymd"), bare) else None
    ways = [Form("date", order) for order in ("dmy", "mdy")]
    if options.day_first is not None:
        ways = [ways[not options.day_first]]
    ways = [form for form in ways if _fits(form, bare)]
    if len(ways) == 1 or (ways and {one[2] for one in parts} == {"."}):
        return ways[0]  # points stand between day, month and year in this order only
    return {"dmy", "mdy"} if ways else None


def _facts(cell: str) -> tuple[str, str] | None:
    """Return what a sign in a number is: decimal (d), of thousands (t), either (e), none (n)."""
    found = _QUANTITY.fullmatch(cell.strip())
    if not found or bool(found["open"]) != bool(found["close"]):
        return None
    core = re.split("[eE]", found["core"])[0]
    spaces = [sign for sign in core if not sign.isdigit() and sign not in ".,"]
    if spaces:
        sign = " " if spaces[0] in SPACES else spaces[0]
        rest = core.translate({ord(one): None for one in spaces})
        last = max(rest.rfind("."), rest.rfind(","))
        decimal = rest[last] if last >= 0 else "."
        fine = _number(cell.strip(), decimal, sign) is not None
        return (("d", decimal) if last >= 0 else ("t", sign)) if fine else None
    signs = [sign for sign in core if sign in ".,"]
    if not signs:
        return "n", ""
    sign, other = signs[-1], "," if signs[-1] == "." else "."
    if len(set(signs)) == 2 or len(signs) == 1:
        before, _, after = core.rpartition(sign)
        if len(signs) == 1 and len(after) == 3 and 1 <= len(before) <= 3 and before[0] != "0":
            return "e", sign
        return ("d", sign) if _number(cell.strip(), sign, other) is not None else None
    return ("t", sign) if _number(cell.strip(), other, sign) is not None else None


def _number_form(bare: Sequence[str], options: ReadOptions) -> Form | set[str] | None:
    around = [(one["before"], one["unit"]) for one in map(_QUANTITY.fullmatch, bare) if one]
    held = [pair for pair in around if any(pair)]
    units = set(held)
    if len(units) > 1 or 0 < 2 * len(held) < len(bare):  # a few may be of another unit
        return None
    if options.decimal is not None or options.thousands is not None:
        decimal = options.decimal or ("," if options.thousands == "." else ".")
        form = Form("number", decimal + (options.thousands or ""))
        return form if (units or not _is_plain(bare)) and _fits(form, bare) else None
    facts = [_facts(cell) for cell in bare]
    if None in facts:
        return None
    signs = {one for one in facts if one is not None}
    decimals = {sign for what, sign in signs if what == "d"}
    thousands = {sign for what, sign in signs if what == "t"}
    either = {sign for what, sign in signs if what == "e"}
    if not decimals and (points := thousands & {".", ","}):
        decimals = {"," if points == {"."} else "."}
    if not decimals and thousands and either:
        decimals = either
    if len(decimals) > 1:
        return None
    if decimals:
        (decimal,) = decimals
        used = {*"".join(bare)} - {decimal}
        ways = [decimal + sign for sign in ",.'’_" if sign in used]
        ways += [decimal + " "] if used & set(SPACES) else []
        ways = [decimal, *ways] if not ways or ways[0][1] == " " else ways
        return next((f for way in ways if _fits(f := Form("number", way), bare)), None)
    if either:
        return either if len(either) == 1 else None
    way = "." + next(iter(thousands), "")
    return Form("number", way) if units or thousands or not _is_plain(bare) else None


def _decide(
    name: str,
    cells: Sequence[str],
    either: set[str],
    signs: set[str],
    options: ReadOptions,
    delimiter: str,
) -> Form | None:
    """Decide by the other columns what one column leaves open; ask if they do not tell."""
    example = cells[0].strip()
    if "dmy" in either:
        if signs == {","}:  # who writes a decimal comma writes the day first
            return Form("date", "dmy")
        a, b = (_date(example, order) for order in ("dmy", "mdy"))
        said = f"{example!r} is {a} (day_first=True) or {b} (day_first=False)."
        raise UndecidedError(said, name, cells[0], {"day_first": True}, {"day_first": False})
    (sign,) = either
    other = "," if sign == "." else "."
    if len(signs) == 1:
        return Form("number", sign if signs == {sign} else other + sign)
    facts = [_facts(cell) for cell in cells]
    plain = [c.strip() for c, one in zip(cells, facts, strict=True) if one and one[0] == "n"]
    n_signs = sum(one is not None and one[0] == "e" for one in facts)
    # Decimals would end in a zero now and then, which is not written, or all cells would have them.
    if n_signs >= MIXED and plain and all(len(re.sub(r"\D", "", one)) <= 3 for one in plain):
        return Form("number", other + sign)
    cell = next(c for c, one in zip(cells, facts, strict=True) if one and one[0] == "e")
    a, b = (_number(cell.strip(), *way) for way in ((sign, ""), (other, sign)))
    said = f"{cell.strip()!r} is {a} (decimal={sign!r}) or {b} (thousands={sign!r})."
    raise UndecidedError(said, name, cell, {"decimal": sign}, {"thousands": sign})


# -- numbers and dates in disguise, in tables that are not cleaned

_EITHER_SIGN = re.compile(rf"{_SIGN}(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def refuse_disguised(name: str, levels: Collection[str], label: str) -> None:
    """Refuse a column of texts that are no words: numbers or dates that are not written as such.

    ``5.1 mg``, ``1,5`` in a column of texts, ``03/04/2024``, and numbers among words: as categories
    they would be misread, and nobody would notice.
    """
    if found := _disguised(list(levels)):
        said = (
            f"{label}: column {name!r} holds {found} If it is a category, say "
            f"categories={name!r}; if it is none of these, drop={name!r}."
        )
        error = with_suggestion(ValueError(said), drop=[name])
        error.choices = ({"drop": [name]}, {"categories": [name]})  # type: ignore[attr-defined]
        raise error


def _disguised(levels: list[str]) -> str:
    if len(levels) < 2:
        return ""
    if all(_DATE.fullmatch(level) for level in levels):
        return (
            f"dates such as {levels[0]!r}. One form is read, as 03/04 may be March or April. "
            "Write them as 2024-12-31."
        )
    found = [_QUANTITY.fullmatch(level) for level in levels]
    around = {(one["before"], one["unit"]) for one in found if one}
    if all(found) and len(around) == 1:
        ((before, unit),) = around
        extra = f"with {unit or before!r}" if unit or before else "in another form"
        return f"numbers {extra}, such as {levels[0]!r}. Write numbers alone, as 12.5."
    numbers = [level for level in levels if _EITHER_SIGN.fullmatch(level)]
    if numbers:
        others = (f" such as {level!r}" for level in levels if not _EITHER_SIGN.fullmatch(level))
        return (
            f"numbers such as {numbers[0]!r} and texts{next(others, '')}. Correct or impute the "
            "texts; if they stand for missing cells, name them with empty_markers=…."
        )
    return ""


# -- rows at the end


def is_remark(cells: Sequence[Any]) -> bool:
    """Whether a row holds one cell at most, as a remark below a table does."""
    return sum(map(is_filled, cells)) <= 1


def without_end(rows: list[Any]) -> list[Any]:
    """Return the rows of a whole table without those at its end that may be no samples."""
    n = len(rows)
    while n > FEWEST_COLUMNS and is_remark(rows[n - 1]):
        n -= 1
    return rows[: n - 1] if n > FEW else rows[:n]


class Totals:
    """Tells a last row that holds the sums, or means, of the rows above it, by its values."""

    def __init__(self, n_columns: int) -> None:
        self.n, self.sums = np.zeros(n_columns), np.zeros(n_columns)

    def add(self, numbers: Array) -> None:
        self.n += np.count_nonzero(np.nan_to_num(numbers), axis=0)
        with np.errstate(invalid="ignore", over="ignore"):
            self.sums += np.nansum(numbers, axis=0)

    def are_in(self, row: Array, above: Callable[[int], Array]) -> bool:
        """Whether every number of a row is the sum or the mean of its column, and one a sum.

        `above` returns the numbers of a column that were not added yet.
        """
        found = False
        for j in np.flatnonzero(np.isfinite(row)).tolist():
            more = above(j)
            total = self.sums[j] + np.nansum(more)
            n = self.n[j] + np.count_nonzero(np.nan_to_num(more))
            is_sum = abs(row[j] - total) <= 0.006 + 1e-9 * abs(total)  # they may be rounded
            if not is_sum and not abs(row[j] - total / max(n, 1)) <= 0.06:
                return False
            found |= bool(is_sum and n >= 3 and total)
        return found


def mark_last(
    blocks: Iterable[tuple[Sequence[int], Array]],
) -> Iterator[tuple[Sequence[int], Array, bool]]:
    """Yield blocks of rows with their numbers, and whether it is the last one."""
    held: tuple[Sequence[int], Array] | None = None
    for block in blocks:
        if held is not None:
            yield *held, False
        held = block
    if held is not None:
        yield *held, True


def loose_number(cell: Any, form: Form | None) -> float:
    """Return the number in a cell; NaN if there is none."""
    if isinstance(cell, str):
        cell = (form.rewrite(cell) if form is not None else cell.strip()) or "nan"
    try:
        return float(plain_value(cell) if cell is not None else "nan")
    except (TypeError, ValueError, OverflowError):
        return np.nan


def without_identical(ids: Any, rows: Any) -> Array | None:
    """Return which rows to keep if rows of the same id are identical; None if there are none."""
    import pandas as pd

    index = pd.Index(ids, tupleize_cols=False)
    again = np.flatnonzero(index.duplicated())
    if not again.size or not isinstance(rows, np.ndarray):
        return None
    first = pd.Series(np.arange(len(index))).groupby(np.asarray(index)).transform("first")
    same = np.asarray(rows[again]), np.asarray(rows[first.to_numpy()[again]])
    if not np.array_equal(*same, equal_nan=True):
        return None
    return np.setdiff1d(np.arange(len(index)), again)
