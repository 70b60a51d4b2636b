"""Fifty exports as companies write them, in five languages, whose truth is known.

Each is a CSV or an Excel file of customers with some of: title rows, two header rows, currencies,
percent, signs between thousands, day-first dates, durations, yes/no, a row of totals, identical
rows, units in names, ids with zeros before them, ids in two columns, a column of remarks.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from viewfold import as_view, inspect_views

N_EXPORTS = 50


class Language(NamedTuple):
    decimal: str
    thousands: str
    delimiter: str
    money: str  # how an amount is written
    date: str
    id: str
    numeric_id: str
    two_ids: tuple[str, str]
    revenue: str
    visits: str
    share: str
    duration: str
    active: str
    yes_no: tuple[str, str]
    since: str
    segment: str
    segments: tuple[str, ...]
    note: str
    words: tuple[str, ...]
    title: str
    total: str
    groups: tuple[str, str]
    encoding: str = "utf-8"


LANGUAGES = {
    "en": Language(
        ".", ",", ",", "${}", "%Y-%m-%d", "Customer ID", "Customer number", ("Store", "Card no."),
        "Revenue", "Visits", "Share online", "Time on site", "Active", ("yes", "no"),
        "Customer since", "Segment", ("retail", "wholesale", "partner"), "Remarks",
        ("called", "twice", "about", "the", "late", "delivery", "happy", "wants", "discount"),
        "Customer report 2024", "Total", ("Sales", "Account"),
    ),
    "de": Language(
        ",", ".", ";", "{} €", "%d.%m.%Y", "Kunden-ID", "Kundennummer", ("Filiale", "Kartennr."),
        "Umsatz", "Besuche", "Anteil online", "Verweildauer", "Aktiv", ("ja", "nein"),
        "Kunde seit", "Gruppe", ("Endkunde", "Großhandel", "Partner"), "Bemerkung",
        ("rief", "wegen", "der", "späten", "Lieferung", "an", "zufrieden", "wünscht", "Rabatt"),
        "Kundenbericht 2024", "Summe", ("Verkauf", "Konto"), "cp1252",
    ),
    "fr": Language(
        ",", "\u202f", ";", "{} €", "%d/%m/%Y", "Identifiant client", "Numéro client",
        ("Magasin", "N° carte"), "Chiffre d'affaires", "Visites", "Part en ligne",
        "Durée de visite", "Actif", ("oui", "non"), "Client depuis", "Catégorie",
        ("détail", "gros", "partenaire"), "Commentaire",
        ("a", "appelé", "pour", "la", "livraison", "tardive", "content", "veut", "remise"),
        "Rapport clients 2024", "Total général", ("Ventes", "Compte"),
    ),
    "es": Language(
        ",", ".", ";", "{} €", "%d/%m/%Y", "Código cliente", "Número de cliente",
        ("Tienda", "Nº tarjeta"), "Ingresos", "Visitas", "Cuota en línea", "Tiempo en el sitio",
        "Activo", ("sí", "no"), "Cliente desde", "Segmento",
        ("minorista", "mayorista", "socio"), "Observaciones",
        ("llamó", "dos", "veces", "por", "la", "entrega", "tarde", "contento", "descuento"),
        "Informe de clientes 2024", "Suma total", ("Ventas", "Cuenta"),
    ),
    "pl": Language(
        ",", "\u00a0", ";", "{} zł", "%d.%m.%Y", "ID klienta", "Numer klienta",
        ("Sklep", "Nr karty"), "Przychód", "Wizyty", "Udział online", "Czas wizyty", "Aktywny",
        ("tak", "nie"), "Klient od", "Segment", ("detal", "hurt", "partner"), "Uwagi",
        ("dzwonił", "dwa", "razy", "w", "sprawie", "dostawy", "zadowolony", "chce", "rabat"),
        "Raport klientów 2024", "Razem", ("Sprzedaż", "Konto"),
    ),
}  # fmt: skip


@dataclass
class Export:
    """A file, and what is true of it."""

    number: int
    path: Path
    traits: list[str]
    ids: str  # the column of ids, or two with a comma
    samples: list[str]  # the ids, as text
    numbers: dict[str, np.ndarray] = field(default_factory=dict)  # true values by column
    days: dict[str, np.ndarray] = field(default_factory=dict)  # of dates: days since the first
    flags: dict[str, np.ndarray] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)  # free text: may be left out
    never: list[str] = field(default_factory=list)  # whole numbers that are no measurement


def write_exports(folder: Path) -> Iterator[Export]:
    for number in range(N_EXPORTS):
        yield write_export(folder, number)


def write_export(folder: Path, number: int) -> Export:
    rng = np.random.default_rng(number)
    language = list(LANGUAGES)[number % 5]
    lang = LANGUAGES[language]
    is_excel = number // 5 % 2 == 1
    n = int(rng.integers(40, 120))

    def chance(p: float) -> bool:
        return bool(rng.random() < p)

    traits = [language, "xlsx" if is_excel else "csv"]
    id_kind = ("text", "numeric", "padded", "two")[number // 10 % 4 if number < 40 else 1]
    columns: dict[str, list[Any]] = {}
    # -- ids
    if id_kind == "two":
        stores = [f"{lang.two_ids[0][0]}{i}" for i in rng.integers(1, 4, n)]
        cards = [str(100 + i // 2) for i in range(n)]
        stores = [f"{lang.two_ids[0][0]}{i % 2 + 1}" for i in range(n)]
        columns[lang.two_ids[0]], columns[lang.two_ids[1]] = stores, cards
        ids = ",".join(lang.two_ids)
        samples = [f"{a}/{b}" for a, b in zip(stores, cards, strict=True)]
    else:
        some = rng.choice(np.arange(1000, 90000), n, replace=False)
        if id_kind == "text":
            samples = [f"C-{i}" for i in some]
        elif id_kind == "padded":
            samples = [f"{i:06d}" for i in some]
        else:
            samples = [str(i + 100000) for i in some]
        ids = lang.numeric_id if id_kind == "numeric" else lang.id
        columns[ids] = (
            list(map(int, samples)) if is_excel and id_kind == "numeric" else list(samples)
        )
    traits.append(f"ids {id_kind}")
    # -- values
    group = rng.integers(3, size=n)
    revenue = np.round(rng.lognormal(6 + group, 0.8), 2)
    visits = np.round(rng.lognormal(4 + group, 1.0)) + 1
    share = np.round(rng.uniform(0, 100, n), 1)
    duration = rng.integers(30, 9000, n).astype(float)
    active = (rng.random(n) < 0.6).astype(float)
    since = np.sort(rng.choice(np.arange(4000), n, replace=False))[rng.permutation(n)]
    export = Export(number, Path(), traits, ids, samples)
    typed = is_excel and chance(0.5)  # numbers are numbers, in Excel
    if typed:
        traits.append("typed")

    def number_as_text(value: float, digits: int, thousands: bool = True) -> str:
        text = f"{value:,.{digits}f}" if thousands else f"{value:.{digits}f}"
        return text.translate({ord(","): lang.thousands, ord("."): lang.decimal})

    def add(name: str, values: np.ndarray, write: Callable[[float], Any]) -> None:
        gaps = rng.random(n) < (0.05 if chance(0.4) else 0.0)
        empty = [None, ""][int(chance(0.5))]
        columns[name] = [
            empty if gap else (float(v) if typed else write(v))
            for v, gap in zip(values.tolist(), gaps, strict=True)
        ]
        export.numbers[name] = np.where(gaps, np.nan, values)

    grouped = chance(0.7)
    if chance(0.5):
        traits.append("currency")
        add(lang.revenue, revenue, lambda v: lang.money.format(number_as_text(v, 2, grouped)))
    else:
        add(f"{lang.revenue} (EUR)", revenue, lambda v: number_as_text(v, 2, grouped))
        traits.append("unit in header")
    add(lang.visits, visits, lambda v: number_as_text(v, 0, grouped))
    add(lang.share, share, lambda v: number_as_text(v, 1) + ("%" if number % 3 else " %"))
    if chance(0.5):
        traits.append("duration")
        hms = [f"{int(v) // 3600}:{int(v) // 60 % 60:02d}:{int(v) % 60:02d}" for v in duration]
        columns[lang.duration] = list(hms)
        export.numbers[lang.duration] = duration
    yes, no = lang.yes_no
    if chance(0.3):
        yes, no = yes.capitalize(), no.capitalize()
    columns[lang.active] = [yes if a else no for a in active]
    export.flags[lang.active] = active
    if chance(0.6):
        traits.append("dates")
        pattern = "%m/%d/%Y" if language == "en" and chance(0.5) else lang.date
        days = [date(2010, 1, 1) + timedelta(int(d)) for d in since]
        columns[lang.since] = list(days) if typed else [d.strftime(pattern) for d in days]
        export.days[lang.since] = since - since.min()
    columns[lang.segment] = [lang.segments[g] for g in group]
    if chance(0.4):
        traits.append("remarks")
        columns[lang.note] = [
            " ".join(rng.choice(lang.words, rng.integers(4, 12))) if chance(0.9) else ""
            for _ in range(n)
        ]
        export.texts.append(lang.note)
    if chance(0.3):
        traits.append("postcodes")
        columns["PLZ / ZIP"] = [f"0{1000 + 7 * int(i)}" for i in rng.integers(6, size=n)]
    if chance(0.3):
        traits.append("invoice numbers")
        columns[f"{lang.total} ref."] = [str(i) for i in rng.choice(90000, n, False) + 10000]
        export.never.append(f"{lang.total} ref.")
    if chance(0.3) and id_kind != "two":
        traits.append("ids last")
        columns[ids] = columns.pop(ids)
    if chance(0.25) and not typed:
        traits.append("words for nothing")
        for i in rng.choice(n, 3, replace=False):
            columns[lang.share][i] = {"de": "k.A.", "fr": "n.d.", "es": "s/d"}.get(language, "n/a")
            export.numbers[lang.share][i] = np.nan
    # -- rows around the table
    names = list(columns)
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    if chance(0.3):
        traits.append("identical rows")
        rows += [list(rows[i]) for i in rng.choice(n, 3, replace=False)]
        counted = list(range(n))
    counted = list(range(len(rows)))
    if chance(0.4):
        traits.append("totals")
        last: list[Any] = [""] * len(names)
        last[0] = lang.total if chance(0.7) else ""
        for j, name in enumerate(names):
            if name in (lang.revenue, f"{lang.revenue} (EUR)", lang.visits):
                truth = export.numbers[name]
                again = [samples.index(_key(rows[i], names, ids)) for i in counted]
                total = float(np.nansum(truth[again]))
                digits = 0 if name == lang.visits else 2
                text = number_as_text(total, digits, grouped)
                money = "currency" in traits and name == lang.revenue
                last[j] = round(total, 2) if typed else (lang.money.format(text) if money else text)
        rows.append(last)
    head = [names]
    if chance(0.3):
        traits.append("two header rows")
        half = 1 + ids.count(",")
        above = [""] * len(names)
        above[half], above[-3] = lang.groups
        owner = ""
        joined = []
        for top, name in zip(above, names, strict=True):
            owner = top or owner
            joined.append(f"{owner} {name}".strip())
        new = dict(zip(names, joined, strict=True))
        head = [above, names]
        for held in (export.numbers, export.days, export.flags):
            for old in list(held):
                held[new[old]] = held.pop(old)
        export.texts = [new[t] for t in export.texts]
        export.never = [new[t] for t in export.never]
        if id_kind != "two":
            export.ids = new[ids]
    if chance(0.4):
        traits.append("title")
        titles: list[list[Any]] = [[lang.title], []]
        if chance(0.5):
            titles.insert(1, ["", "ERP 7.2"])
        head = [*titles, *head]
    if chance(0.3):
        traits.append("remark below")
        rows += [[], [f"{lang.title}: SAP / ERP"]]
    path = folder / f"export{number:02d}.{traits[1]}"
    (_write_excel if is_excel else _write_csv)(path, [*head, *rows], lang, padded=chance(0.5))
    export.path = path
    return export


def _key(row: list[Any], names: list[str], ids: str) -> str:
    return "/".join(str(row[names.index(one)]) for one in ids.split(","))


def _write_csv(path: Path, rows: list[list[Any]], lang: Language, padded: bool) -> None:
    width = max(map(len, rows))
    out = io.StringIO()
    writer = csv.writer(out, delimiter=lang.delimiter)
    for row in rows:
        held = ["" if cell is None else cell for cell in row]
        # Spreadsheet programs fill up rows above a table; others do not.
        writer.writerow(held + [""] * (width - len(held)) if padded else held)
    path.write_bytes(out.getvalue().encode(lang.encoding))


def _write_excel(path: Path, rows: list[list[Any]], lang: Language, padded: bool) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append([None if cell == "" else cell for cell in row])
    book.save(path)


# -- what becomes of an export


class Verdict(NamedTuple):
    export: Export
    ids_right: bool
    wrong: list[str]  # what the proposed command would lose or reinterpret without a word
    right: bool  # whether it is folded right without any option but what is found by itself
    why: str


def judge(export: Export) -> Verdict:
    """Look at an export as `viewfold inspect` does, and read it as the proposed command would."""
    try:
        found = inspect_views(export.path)[0]
    except ValueError as error:
        return Verdict(export, False, [], False, f"refused: {error}")
    ids_right = found.options.get("ids") == export.ids
    offered = [c.get("ids") for _, several in found.undecided for c in several]
    if export.ids in offered:  # it is not decided, but among those to choose from
        return Verdict(export, True, [], False, f"undecided: {offered}")
    if found.refused:
        return Verdict(export, ids_right, [], False, f"refused: {found.refused}")
    asked = {*found.proposed} - {"ids"}
    undecided = [said for said, _ in found.undecided]
    options = {name: value for name, value in found.options.items() if name != "view"}
    try:
        view = as_view(found.source, **options)
    except ValueError as error:
        return Verdict(export, ids_right, [f"fails: {error}"], False, "the command fails")
    told = {one.name for one in found.of_kind("out")} | {
        name for name in export.numbers if any(repr(name) in one for one in undecided)
    }
    wrong, lost = [], []
    features = {name.partition("=")[0] for name in view.features or ()}
    wrong += [f"{name} is a feature" for name in export.never if name in features]
    if not ids_right:
        wrong += [f"{name} is a feature" for name in export.ids.split(",") if name in features]
    if ids_right:
        place = {str(name): i for i, name in enumerate(view.ids.tolist())}
        if set(place) != set(export.samples):
            odd = set(place) ^ set(export.samples)
            return Verdict(export, True, [f"samples: {sorted(odd)[:3]}"], False, "samples")
        at = [place[name] for name in export.samples]
        X = np.asarray(view.rows.X)[at]
        for name, truth in {**export.numbers, **export.flags}.items():
            if name in (view.features or ()):
                if not _same(X[:, view.features.index(name)], truth):
                    wrong.append(f"{name}: {X[:3, view.features.index(name)]} for {truth[:3]}")
            elif name not in export.flags and name in told:
                lost.append(name)
            elif name not in export.flags:
                wrong.append(f"{name} is not there")
        for name, truth in export.days.items():
            if f"{name}.days" in (view.features or ()):
                days = X[:, view.features.index(f"{name}.days")]
                if not _same(days, truth):
                    wrong.append(f"{name}: {days[:3]} for {truth[:3]}")
            elif name in told:
                lost.append(name)
            else:
                wrong.append(f"{name} is not a date")
    why = f"ids {found.options.get('ids')!r}" if not ids_right else ""
    why += f" asks {sorted(asked)}" * bool(asked) + f" lost {lost}" * bool(lost)
    why += f" undecided {undecided}" * bool(undecided)
    return Verdict(export, ids_right, wrong, not (why or wrong), why)


def _same(found: np.ndarray, truth: np.ndarray) -> bool:
    return bool(np.allclose(found, truth, rtol=1e-6, atol=1e-6, equal_nan=True))


def main() -> None:
    import sys
    import tempfile
    import warnings

    warnings.simplefilter("ignore")
    only = {int(one) for one in sys.argv[1:]}
    with tempfile.TemporaryDirectory() as folder:
        verdicts = [
            judge(export)
            for export in write_exports(Path(folder))
            if not only or export.number in only
        ]
    for v in verdicts:
        if not v.right:
            print(v.export.number, " ".join(v.export.traits), "|", v.why[:200], "|", v.wrong)
    print("ids right", sum(v.ids_right for v in verdicts), "of", len(verdicts))
    print("silently wrong", sum(bool(v.wrong) for v in verdicts))
    print("folded right without an option", sum(v.right for v in verdicts))


if __name__ == "__main__":
    main()
