"""A folder of ugly files, each with its defect in its name: ``python tests/ugly_folder.py FOLDER``.

docs/files.md says what becomes of each. A file that is folded comes with what it should be read as.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import cos, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
from ugly_files import write_text, write_workbook

N = 12
IDS = [f"p{i:02}" for i in range(N)]
IRON, ZINC, AGE = np.random.default_rng(0).normal(scale=10, size=(3, N)).round(2)
NAMES = ("id", "iron", "zinc", "age")
NAN = float("nan")

Rows = list[list[str]]


@dataclass(frozen=True)
class Read:
    """What a file should be read as: ids, and the values of each feature."""

    ids: Sequence[Any]
    features: dict[str, Any]


@dataclass(frozen=True)
class Ugly:
    """A file: how it is written, what it is read as, and as what with the options of the page."""

    write: Callable[[Path], Any]
    read: Read | None = None
    instead: Read | None = None


def read(ids: Sequence[Any] = IDS, leave: Sequence[str] = (), **more: Any) -> Read:
    """Return the usual samples and features, with others, or without some."""
    usual = {"iron": IRON, "zinc": ZINC, "age": AGE, **more}
    return Read(ids, {name: values for name, values in usual.items() if name not in leave})


def only(rows: Sequence[int], **more: Any) -> Read:
    """Return what is read if only some of the samples are there."""
    whole = read(**more)
    kept = {name: np.asarray(values)[list(rows)] for name, values in whole.features.items()}
    return Read([IDS[i] for i in rows], kept)


# ---- rows of texts, and how to change them ------------------------------------------------------


def cells() -> Rows:
    return [[i, *(f"{v:.2f}" for v in row)] for i, *row in zip(IDS, IRON, ZINC, AGE, strict=True)]


def column(j: int, text: Callable[[int, str], str]) -> Rows:
    """Change every cell of a column."""
    return [[*row[:j], text(i, row[j]), *row[j + 1 :]] for i, row in enumerate(cells())]


def cell(i: int, j: int, text: str) -> Rows:
    """Change one cell."""
    return column(j, lambda row, old: text if row == i else old)


def longer(text: Callable[[int], str]) -> Rows:
    """Add a column."""
    return [[*row, text(i)] for i, row in enumerate(cells())]


def csv(
    rows: Rows,
    names: Sequence[str] = NAMES,
    sep: str = ",",
    encoding: str = "utf-8",
    above: Sequence[str] = (),
) -> Callable[[Path], Any]:
    lines = [sep.join(row) for row in ([list(names)] if names else []) + rows]
    return partial(write_text, rows=[*above, *lines], encoding=encoding)


def with_more(name: str, text: Callable[[int], str]) -> Callable[[Path], Any]:
    return csv(longer(text), [*NAMES, name])


def commas(rows: Rows) -> Rows:
    return [[row[0], *(text.replace(".", ",") for text in row[1:])] for row in rows]


def bytes_of(change: Callable[[list[str]], str]) -> Callable[[Path], Any]:
    """Write the usual lines, put together in some other way."""
    lines = [",".join(row) for row in [list(NAMES), *cells()]]
    return lambda path: path.write_bytes(change(lines).encode())


def jsonl(record: Callable[[int], dict[str, Any]]) -> Callable[[Path], Any]:
    return lambda path: write_text(path, [json.dumps(record(i)) for i in range(N)])


def usual(i: int) -> dict[str, Any]:
    return dict(zip(NAMES, (IDS[i], IRON[i], ZINC[i], AGE[i]), strict=True))


def sheet(change: Callable[[int, list[Any]], list[Any]], *above: list[Any]) -> Any:
    rows = [change(i, list(usual(i).values())) for i in range(N)]
    return lambda path: write_workbook(path, labs=[*above, list(NAMES), *rows])


def zipped(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("labs.txt", "id,iron\n" * 100)


# ---- the folder ---------------------------------------------------------------------------------

THOUSANDS = [1000 * (i + 1) + 100 + i for i in range(N)]
SMOKER = np.arange(N) % 2
DAYS = [f"2024-03-{i + 1:02}" for i in range(N)]
SEEN = {
    "seen.days": range(N),
    "seen.weekday.sin": [sin(2 * pi * ((4 + i) % 7) / 7) for i in range(N)],
    "seen.weekday.cos": [cos(2 * pi * ((4 + i) % 7) / 7) for i in range(N)],
}
SENTINELS = np.where(np.isin(np.arange(N), (2, 5, 7, 9)), -999, IRON)

NUMBERS = {
    "semicolon-decimal-comma.csv": Ugly(csv(commas(cells()), sep=";"), read()),
    "two-decimal-signs.csv": Ugly(csv(cell(5, 1, '"7,31"'))),
    "thousands-ambiguous.csv": Ugly(
        csv([[who, f'"{i + 1},{100 + i}"', str(i)] for i, who in enumerate(IDS)], NAMES[:3]),
        instead=Read(IDS, {"iron": THOUSANDS, "zinc": range(N)}),
    ),
    "thousands-beside-points.csv": Ugly(
        csv(column(1, lambda i, _: f'"{i + 1},{100 + i}"')), read(iron=THOUSANDS)
    ),
    "thousands-apostrophe.csv": Ugly(
        csv(column(1, lambda i, _: f"{i + 1}'{100 + i}")),
        read(iron=THOUSANDS),
    ),
    "unit-in-cell.csv": Ugly(csv(column(1, lambda _, old: f"{old} mg")), read()),
    "unit-in-few-cells.csv": Ugly(
        csv(column(1, lambda i, _: f"{i % 3} mg")), read(iron=np.arange(N) % 3)
    ),
    "unit-in-one-cell.csv": Ugly(csv(cell(4, 1, "5.1 mg"))),
    "percent.csv": Ugly(
        csv(column(1, lambda i, _: f"{10 * (i % 4)}%")), read(iron=10 * (np.arange(N) % 4))
    ),
    "below-detection.csv": Ugly(csv(cell(4, 1, "<0.05"))),
    "inf-cells.csv": Ugly(csv(cell(4, 2, "inf"))),
    "nonbreaking-space.csv": Ugly(csv(cell(4, 1, "7.25\u00a0"))),
    "minus-sign-of-typesetters.csv": Ugly(
        csv(column(1, lambda i, _: f"\u2212{i % 3}.5")), read(iron=-(np.arange(N) % 3 + 0.5))
    ),
    "huge-numbers.csv": Ugly(
        csv(column(1, lambda i, _: str(2**60 + i))), read(iron=[float(2**60)] * N)
    ),
    "numbers-as-texts.jsonl": Ugly(
        jsonl(lambda i: {**usual(i), "iron": str(IRON[i]) if i % 2 else IRON[i]}), read()
    ),
    "number-or-word.jsonl": Ugly(
        jsonl(lambda i: {**usual(i), "iron": "high" if i == 4 else i % 3}),
        instead=read(
            **{
                f"iron={level}": [float((i % 3) == level and i != 4) for i in range(N)]
                for level in range(3)
            },
            **{"iron=high": [float(i == 4) for i in range(N)]},
            leave=["iron"],
        ),
    ),
    "decimal-commas-as-texts.xlsx": Ugly(
        sheet(lambda i, row: [row[0], f"{i % 4},5", *row[2:]]),
        read(iron=np.arange(N) % 4 + 0.5),
    ),
}

MISSING = {
    "na-markers-mixed.csv": Ugly(
        csv(
            [
                [row[0], *((["NA", "n/a", "?"], ["-", ".", ""])[i - 3] if i in (3, 4) else row[1:])]
                for i, row in enumerate(cells())
            ]
        ),
        only([i for i in range(N) if i not in (3, 4)]),
    ),
    "sentinel-minus-999.csv": Ugly(
        csv(column(1, lambda i, old: "-999" if i in (2, 5, 7, 9) else old)),
        read(iron=SENTINELS),
    ),
    "missing-cells.csv": Ugly(
        csv(cell(4, 2, "")), read=read(zinc=np.where(np.arange(12) == 4, np.nan, ZINC))
    ),
    "empty-column.csv": Ugly(with_more("nothing", lambda _: ""), read=read(nothing=[np.nan] * 12)),
    "rows-of-zeros.csv": Ugly(
        csv(
            [
                [who, *(["0"] * 12 if i in (3, 4) else [str(i + j + 1) for j in range(12)])]
                for i, who in enumerate(IDS)
            ],
            ["id", *(f"word{j}" for j in range(12))],
        ),
        Read(
            [IDS[i] for i in range(N) if i not in (3, 4)],
            {f"word{j}": [i + j + 1 for i in range(N) if i not in (3, 4)] for j in range(12)},
        ),
    ),
    "excel-error-cells.xlsx": Ugly(
        sheet(lambda i, row: [row[0], "#DIV/0!" if i == 4 else row[1], *row[2:]])
    ),
}

WORDS = {
    "boolean-yes-no.csv": Ugly(
        with_more("smoker", lambda i: ("no", "yes")[i % 2]),
        read(smoker=SMOKER),
    ),
    "boolean-and-numbers.csv": Ugly(
        with_more("smoker", lambda i: ("TRUE", "false", "1", "0")[i % 4]),
        instead=read(
            **{
                f"smoker={level}": [float(i % 4 == j) for i in range(N)]
                for j, level in enumerate(("TRUE", "false", "1", "0"))
            }
        ),
    ),
    "free-text.csv": Ugly(with_more("note", lambda i: f"said {i} things"), read()),
    "quoted-newlines.csv": Ugly(
        with_more("ward", lambda i: ('"I,\nC"', "ER")[i % 2]),
        read(**{"ward=ER": SMOKER, "ward=I,\nC": 1 - SMOKER}),
    ),
    "dates-two-orders.csv": Ugly(
        with_more("seen", lambda i: ("03/04/2024", "25/12/2024", "12/25/2024")[i % 3]),
        instead=read(),
    ),
    "dates-day-first.csv": Ugly(with_more("seen", lambda i: f"{i + 1:02}.03.2024"), read(**SEEN)),
    "dates-iso.csv": Ugly(with_more("seen", lambda i: DAYS[i]), read(**SEEN)),
    "dates-as-numbers.csv": Ugly(
        with_more("seen", lambda i: DAYS[i].replace("-", "")),
        read(seen=[int(day.replace("-", "")) for day in DAYS]),
    ),
    "nested-json.jsonl": Ugly(
        jsonl(lambda i: {"id": IDS[i], "labs": {"iron": IRON[i]}, "age": 1.0})
    ),
    "key-twice.jsonl": Ugly(
        lambda path: write_text(path, [f'{{"id": "{i}", "iron": 1, "iron": 2}}' for i in IDS])
    ),
}

WHO = {
    "ids-leading-zeros.csv": Ugly(
        csv(column(0, lambda i, _: f"{i:03}")), read([f"{i:03}" for i in range(N)])
    ),
    "ids-as-floats.csv": Ugly(
        csv(column(0, lambda i, _: f"{i}.0")), read([f"{i}.0" for i in range(N)])
    ),
    "ids-scientific.csv": Ugly(
        csv(column(0, lambda i, _: f"{i}E5")), read([f"{i}E5" for i in range(N)])
    ),
    "ids-huge-integers.csv": Ugly(
        csv(column(0, lambda i, _: str(2**53 + i))), read([2**53 + i for i in range(N)])
    ),
    "ids-turned-into-dates.xlsx": Ugly(
        sheet(lambda i, row: [datetime(2024, 3, 1) if i == 2 else row[0], *row[1:]])
    ),
    "ids-missing.csv": Ugly(csv(cell(4, 0, ""))),
    "duplicate-ids.csv": Ugly(csv(cell(7, 0, "p02"))),
    "total-row.csv": Ugly(
        csv([*cells(), ["Total", "1.00", "2.00", "3.00"]]),
        Read([*IDS, "Total"], {"iron": [*IRON, 1], "zinc": [*ZINC, 2], "age": [*AGE, 3]}),
    ),
}

LAYOUT = {
    "latin1-umlauts.csv": Ugly(
        csv(cells(), ["id", "Größe", "zinc", "age"], encoding="latin-1"),
        Read(IDS, {"Größe": IRON, "zinc": ZINC, "age": AGE}),
    ),
    "utf16-bom.tsv": Ugly(csv(cells(), sep="\t", encoding="utf-16"), read()),
    "tabs-called-csv.csv": Ugly(csv(cells(), sep="\t"), read()),
    "mixed-line-endings.csv": Ugly(
        bytes_of(
            lambda lines: "".join(line + ("\r\n", "\n")[i % 2] for i, line in enumerate(lines))
        ),
        read(),
    ),
    "blank-lines.csv": Ugly(
        bytes_of(lambda lines: "\n\n" + "\n".join([*lines[:5], "", *lines[5:], "", ""])), read()
    ),
    "bom-in-middle.csv": Ugly(csv(cell(6, 0, "\ufeffp06"))),
    "header-repeated.csv": Ugly(csv([*cells()[:6], list(NAMES), *cells()[6:]])),
    "header-missing.csv": Ugly(csv(cells(), [])),
    "title-above-names.csv": Ugly(csv(cells(), above=["Lab results,,,"]), read()),
    "title-above-names.xlsx": Ugly(sheet(lambda _, row: row, ["Lab results"]), read()),
    "duplicate-columns.csv": Ugly(csv(cells(), ["id", "iron", "iron", "age"])),
    "ragged-rows.csv": Ugly(csv([row[:3] if i == 6 else row for i, row in enumerate(cells())])),
    "trailing-delimiter.csv": Ugly(csv(longer(lambda _: ""), [*NAMES, ""]), read()),
    "index-column-unnamed.csv": Ugly(
        csv([[str(i), *row] for i, row in enumerate(cells())], ["", *NAMES])
    ),
    "unclosed-quote.csv": Ugly(csv(cell(4, 1, '"1.5'))),
    "sheet-with-formulas.xlsx": Ugly(sheet(lambda _, row: [*row[:2], "=1+1", row[3]])),
    "archive-called.csv": Ugly(zipped),
    "header-only.csv": Ugly(csv([])),
}

FOLDER: dict[str, Ugly] = NUMBERS | MISSING | WORDS | WHO | LAYOUT


def make(folder: Path) -> None:
    """Write all files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, ugly in FOLDER.items():
        ugly.write(folder / name)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
