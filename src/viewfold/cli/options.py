"""The options and arguments that several commands have, as decorators, and what they mean."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from viewfold import errors
from viewfold._util.constants import FEWEST
from viewfold._util.file import File
from viewfold.app import output as tables
from viewfold.app.telling import AUTO
from viewfold.cli.command import PATH, Decorator, argument, section
from viewfold.cli.console import note, print_json, tell

if TYPE_CHECKING:
    from viewfold._util.table import Table
    from viewfold.estimators import FoldingEstimator

READING = "How the file is read"  # a heading
FILE = click.Path(readable=False, path_type=File)


class Whole(click.IntRange):
    name = "whole number"  # click would say that 'ten' is not a valid integer range


class Seconds(click.FloatRange):
    name = "number of seconds"


class StatePath(click.Path):
    """Where a state is; an address stays as it is, which no path does."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Path:
        return cast(Path, File(value)) if "://" in value else Path(value)


def number_of_clusters(text: str) -> int:
    """Return the number of clusters that was typed, `AUTO` for auto."""
    number = text.strip()
    if number.lower() == "auto":
        return AUTO
    if not number.isdecimal() or int(number) < 1:
        raise click.BadParameter(f"{text!r} is neither a number such as 10, nor auto.")
    return int(number)


def split_names(text: str) -> list[str]:
    """Return the names that an option lists: comma-separated, quoted where they hold a comma."""
    return next(csv.reader([text], skipinitialspace=True), [])


state = argument(
    "state", metavar="STATE.vf", type=StatePath(), help="State file (.vf) or folder (.vfd)."
)
id_column = click.option(
    "--id", "id_column", metavar="COLUMN", help="Column that holds the sample ids."
)
no_id = click.option(
    "--no-id", is_flag=True, help="The file has no ids: a sample is known by its row number."
)
similar_ids = click.option(
    "--similar-ids",
    type=click.Choice(["refuse", "match", "new"]),
    default="refuse",
    help="What to do with ids that differ from known ones only in case, spaces, leading "
    "zeros or how accents are encoded: refuse the file, match the known samples, or "
    "take them for new samples.",
)
min_shared = click.option(
    "--min-shared",
    metavar="N|P%",
    help="Refuse the view if fewer of its samples are known, for instance 100 or 50%.",
)
max_moved = click.option(
    "--max-moved",
    metavar="N|P%",
    help="End with exit code 13 if more known samples changed their cluster, for "
    "instance 100 or 5%. The command does its work all the same.",
)
view = click.option(
    "--view",
    metavar="NAME",
    help="Name of the view; unless given, the view is named after its file. If the file "
    "holds several views, the one to use.",
)
min_confidence = click.option(
    "--min-confidence",
    metavar="P",
    type=float,
    help="Print the cluster -1 for samples with a lower confidence. The state file stays as it is.",
)
max_novelty = click.option(
    "--max-novelty",
    metavar="P",
    type=float,
    help="Print the cluster -1 for samples that are more unlike known ones: 0.99 lets 1 % of these "
    "go, too.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
wait = click.option(
    "--wait",
    metavar="SECONDS",
    type=Seconds(min=0),
    default=60,
    help="How long to wait while another program writes the state.",
)
method = click.option(
    "--method",
    metavar="NAME",
    default="viewfold",
    help="Method of a new state: viewfold, fcmvc (the paper's FCMVC-IV), or one that "
    "another package adds.",
)
keep = click.option(
    "--keep",
    metavar="N",
    type=Whole(min=0),
    help="How many earlier states the file keeps from now on, for undo. Each takes as "
    "much space as the present state. A new file keeps 1.",
)
seed = click.option(
    "--seed", metavar="N", type=Whole(0, 2**32 - 1), default=0, help="Random seed of a new state."
)
private = click.option(
    "--private",
    is_flag=True,
    help="Keep no encoders, and remove those of earlier views; predict then does not "
    "work. docs/privacy.md says what the file still reveals.",
)
quarantine = click.option(
    "--quarantine",
    metavar="FILE",
    type=PATH,
    help="Write rows of a known view that are not what it looked like before to this table, fold "
    "the others, and end with exit code 15.",
)
raw = click.option(
    "--raw",
    is_flag=True,
    help="In CSV and TSV, do not put an apostrophe before text that a spreadsheet would "
    "run as a formula.",
)
yes = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


def clusters(*, required: bool = False) -> Decorator:
    return click.option(
        "--clusters",
        "-k",
        metavar="K|auto",
        type=number_of_clusters,
        required=required,
        help="Number of clusters, or auto for the one that stands out (see viewfold suggest)."
        + ("" if required else " A new state needs it."),
    )


# -- how a file is read

FILE_FLAGS = {
    "sheet": click.option(
        "--sheet",
        metavar="NAME",
        multiple=True,
        help="Sheet of an Excel file to read; may be repeated.",
    ),
    "encoding": click.option(
        "--encoding", metavar="NAME", help="Encoding of a text file, for instance cp1252."
    ),
    "decimal": click.option("--decimal", metavar=".|,", help="Decimal sign in a text file."),
    "thousands": click.option(
        "--thousands", metavar="SIGN", help="Thousands separator in a text file: , . ' or a space."
    ),
    "day_first": click.option(
        "--day-first/--month-first",
        default=None,
        help="What 03/04/2024 is, where no cell of the column tells: 3 April or March 4.",
    ),
    "layer": click.option(
        "--layer", metavar="NAME", help="Layer of an AnnData file to use instead of X."
    ),
    "use_rep": click.option(
        "--rep",
        "use_rep",
        metavar="NAME",
        help="Entry of obsm in an AnnData file to use instead of X, such as X_pca.",
    ),
}


def file_argument(says: str, *, several: bool = False) -> Decorator:
    says += " It may be - for standard input, or an address such as s3://… or https://…"
    if several:
        return argument("files", nargs=-1, required=True, metavar="FILE", type=FILE, help=says)
    return argument("file", metavar="FILE", type=FILE, help=says)


def reads(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that has an argument `file` or `files` take the options about files.

    Of several files, an option goes to those about whose format it says something. What --id and
    --no-id say becomes `ids`: a column, False (there are none), or None (nothing was said).
    """

    @wraps(command)
    def run(id_column: str | None, no_id: bool, **given: Any) -> None:
        if no_id and id_column is not None:
            raise ValueError(
                "--id names a column of ids, --no-id says that there is none. Choose one."
            )
        said = {
            name: None if (value := given.pop(name)) in ("", ()) else value for name in FILE_FLAGS
        }
        if "file" in given:
            given["file"] = File(given["file"].path, **said)
        else:
            given["files"] = _each_with(given["files"], said)
        command(ids=False if no_id else id_column, **given)

    return section(READING, *FILE_FLAGS.values())(run)


def _each_with(files: Sequence[File], said: dict[str, Any]) -> Sequence[File]:
    """Return files with the options that say something about them; with all, if none of them do."""
    given = {name: value for name, value in said.items() if value is not None}
    if not given:
        return files
    from viewfold.data.files import options_of

    fit = [tuple(given) if (known := options_of(file)) is None else known for file in files]
    fits_none = {name for name in given if not any(name in names for names in fit)}
    return [
        File(file.path, **{n: v for n, v in given.items() if n in names or n in fits_none})
        for file, names in zip(files, fit, strict=True)
    ]


ROWS_AND_COLUMNS = {
    "empty_rows": click.option(
        "--empty-rows",
        type=click.Choice(["absent", "keep"]),
        default="absent",
        help="What a row of zeros means, in a view of non-negative features whose other rows have "
        "ten or more above zero: the view lacks the sample (absent), or the zeros are data (keep).",
    ),
    "missing_cells": click.option(
        "--missing-cells",
        type=click.Choice(["accept", "error"]),
        default="accept",
        help="Missing cells in rows that have other values: predict them from those "
        "(accept), or refuse the view (error).",
    ),
    "columns": click.option("--columns", metavar="A,B,…", help="Use only these columns."),
    "drop": click.option("--drop", metavar="A,B,…", help="Leave out these columns."),
    "categories": click.option(
        "--categories",
        metavar="A,B,…",
        help="Take these columns for categories. Columns of text with few different values "
        "are categories anyway.",
    ),
    "empty_markers": click.option(
        "--empty-markers",
        metavar="A,B,…",
        help="Texts that mark a missing cell, instead of NA, n/a, ., -, ? and the like.",
    ),
    "as_is": click.option(
        "--as-is",
        is_flag=True,
        help="Clean nothing: no title rows, totals, identical rows, currencies, percent, dates and "
        "the like. What is cleaned otherwise is told.",
    ),
    "strict": click.option(
        "--strict",
        is_flag=True,
        help="Refuse a file with columns of free text instead of leaving these out, and rows of a "
        "known view that are not what it looked like before, or lack columns (exit code 14).",
    ),
}


def _renamed(context: Any, parameter: Any, given: tuple[str, ...]) -> dict[str, str]:
    pairs = [one.partition("=") for one in given]
    if not all(old and new for old, _, new in pairs):
        raise click.BadParameter("expected OLD=NEW, the known name of a column and its new one.")
    return {old: new for old, _, new in pairs}


rename = section(
    READING,
    click.option(
        "--rename",
        metavar="OLD=NEW",
        multiple=True,
        callback=_renamed,
        help="Take column NEW of the file for column OLD of a known view; add remembers it. Give "
        "it once for each column.",
    ),
)


def rows_and_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take these options; it gets them as `as_view` does, in a dict `reading`."""

    @wraps(command)
    def run(**given: Any) -> None:
        said = {name: given.pop(name) for name in ROWS_AND_COLUMNS}
        listed = ("columns", "drop", "categories", "empty_markers")
        given_ones = {name: value for name, value in said.items() if value is not None}
        said = {n: split_names(v) if n in listed else v for n, v in given_ones.items()}
        command(reading=said, **given)

    return section(READING, *ROWS_AND_COLUMNS.values())(run)


def views_of_files(
    files: Sequence[File], names: Sequence[str]
) -> tuple[File | list[File] | dict[str, File], str | None]:
    """Return rows of known views as `predict_frame` takes them, and which view one file holds."""
    if len(files) == 1 and len(names) < 2:
        return files[0], names[0] if names else None
    if not names:
        return list(files), None
    if len(set(names)) < len(names):
        raise ValueError("--view names a view twice. Give each view once.")
    if len(files) == 1:
        return dict.fromkeys(names, files[0]), None
    if len(files) != len(names):
        raise ValueError(
            f"There are {len(files)} files and {len(names)} times --view. Give it once for each "
            "file, in the same order, or name the files after their views."
        )
    return dict(zip(names, files, strict=True)), None


# -- tables that are printed or written

OUTPUT = click.option(
    "-o",
    "--output",
    type=PATH,
    help="Write to this file (.csv, .tsv, .parquet, .arrow, .xlsx or .jsonl) instead of "
    "standard output.",
)


@dataclass(frozen=True)
class Output:
    """Where a table goes; a file may not replace one of the inputs, the state first."""

    file: Path | None
    inputs: tuple[tables.StrPath, ...]
    raw: bool
    as_json: bool

    def deliver(self, table: Table) -> None:
        if self.file is not None:
            state = self.inputs[0]
            tables.write_table(table, self.file, self.inputs, private=state, raw=self.raw)
            facts = {"file": str(self.file), "samples": len(table)}
            tell(self.as_json, facts, f"{self.file} is written: {len(table):,} rows.")
        elif self.as_json:
            names = tables.names(table)
            print_json([dict(zip(names, row, strict=True)) for row in tables.rows(table)])
        else:
            tables.print_table(table, sys.stdout, raw=self.raw)


def delivers(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take the options about a table; it gets an `Output`, which can be written."""

    @wraps(command)
    def run(output: Path | None, raw: bool, as_json: bool, **given: Any) -> None:
        inputs = (given["state"], *given.get("files", ()))
        if output is not None:
            tables.check(output, tables.TABLES, inputs)
        command(output=Output(output, inputs, raw, as_json), **given)

    for one in (as_json, raw, OUTPUT):
        run = one(run)
    return run


# -- who works on a .vfd folder

ENGINE = {
    "engine": click.option(
        "--engine",
        metavar="local|dask|spark",
        help="Where to compute with a .vfd folder: on this machine, or on a Dask or Spark cluster.",
    ),
    "address": click.option(
        "--address", metavar="URL", help="Address of the Dask scheduler or the Spark master."
    ),
    "memory": click.option(
        "--memory", metavar="SIZE", help="Memory of all workers together; 4GB unless given."
    ),
    "buckets": click.option(
        "--buckets", metavar="N", type=Whole(min=1), help="Number of buckets of a new folder."
    ),
    "scratch": click.option(
        "--scratch",
        metavar="FOLDER",
        help="Folder or address for temporary rows, which all workers can reach.",
    ),
}


def works(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that has an argument `state` take the options about engines."""

    @wraps(command)
    def run(**given: Any) -> None:
        said = {name: given.pop(name) or None for name in ENGINE}
        file = given.get("file") or next(iter(given.get("files", ())), None)
        with _working(given["state"], None if file is None else str(file), said):
            command(**given)

    return section("Large data", *ENGINE.values())(run)


@contextmanager
def _working(state: Path, file: str | None, said: dict[str, Any]) -> Iterator[None]:
    """Let the engine that was named work on the state."""
    from viewfold.store import is_folder

    given = [f"--{name}" for name, value in said.items() if value is not None]
    if not is_folder(state):
        if given:
            folder = Path(state).with_suffix(".vfd")
            made = f" Write it as one: viewfold convert {state} {folder}" if state.exists() else ""
            raise ValueError(
                f"{given[0]} is for states in buckets, which are folders ({folder}), and {state} "
                f"is one file.{made}"
            )
        yield
        return
    from viewfold.rows import open_engine, using
    from viewfold.store.folder import Folder, latest_manifest

    manifest = latest_manifest(Folder.at(state))
    known = None if manifest is None else manifest.states[0].n_buckets
    if known is not None and said["buckets"] not in (None, known):
        raise ValueError(
            f"{state} has {known} buckets. To have {said['buckets']}, write it anew: viewfold "
            f"convert {state} NEW.vfd --buckets {said['buckets']}"
        )
    opened = open_engine(
        said["engine"] or "local",
        address=said["address"],
        memory=said["memory"] or "4GB",
        n_buckets=known or said["buckets"],
        n_bytes=_bytes(file),
        folder=said["scratch"],
    )
    with opened as engine, using(engine):
        yield


def _bytes(file: str | None) -> int | None:
    """Return how many bytes the files of a view have, None if that is not known."""
    if file is None or "://" in file or file == "-":
        return None
    paths = [Path(file)] if Path(file).exists() else [Path(found) for found in glob(file)]
    inside = [one for path in paths for one in (path.rglob("*") if path.is_dir() else [path])]
    return sum(path.stat().st_size for path in inside if path.is_file()) or None


# -- whether too many samples moved, for a job that nobody watches


def share(text: str, name: str) -> float:
    """Return a number of samples, or a part of them for a percentage or a fraction."""
    number = text.strip().removesuffix("%")
    percent = number != text.strip()
    try:
        found = float(number) / (100 if percent else 1)
    except ValueError:
        found = -1.0
    whole = number.isdecimal() and not percent
    if not (0 <= found <= 1 or whole):
        raise ValueError(f"{name} {text!r} is no number. Give one such as 100, or 50%.")
    return int(number) if whole else found


class Limit:
    """The option --max-moved: how many of the samples that were known may have moved.

    Of those with a row in the delivery, no larger part may have: a small wrong delivery moves few
    of all samples, and most of its own.
    """

    def __init__(self, said: str | None) -> None:
        self.said = said
        self.most = None if said is None else share(said, "--max-moved")
        self.before: dict[Any, int] = {}
        self.moved = self.known = 0
        self.delivered: list[dict[str, Any]] = []

    def begin(self, model: FoldingEstimator) -> None:
        if self.most is not None and hasattr(model, "labels_"):
            self.before = dict(zip(model.ids_.tolist(), model.labels_.tolist(), strict=True))

    def facts(self, model: FoldingEstimator, folds: list[dict[str, Any]]) -> dict[str, Any]:
        """Return how many are in another cluster after it, if there is a limit."""
        if self.most is None:
            return {}
        self.delivered = [fold for fold in folds if fold["update"]]
        now = zip(model.ids_.tolist(), model.labels_.tolist(), strict=True)
        self.moved = sum(self.before.get(name, cluster) != cluster for name, cluster in now)
        self.known = len(self.before)
        return {"moved": self.moved, "known_before": self.known, "too_many_moved": self.exceeded}

    @property
    def exceeded(self) -> bool:
        if self.most is None:
            return False
        if isinstance(self.most, int):
            return self.moved > self.most
        return self.moved > self.most * self.known or self.odd is not None

    @property
    def odd(self) -> tuple[int, int] | None:
        """How many of the known samples of a delivery moved, if that are ten, and too many."""
        for fold in self.delivered:
            known = fold["shared"] + fold["corrected"]
            moved = fold["moved"] - fold["others_moved"]
            if moved >= FEWEST and moved > (self.most or 0) * known:
                return moved, known
        return None

    def end(self) -> None:
        """End the command, with an exit code of its own if more moved than should."""
        if self.exceeded:
            moved, known = self.moved, self.known
            whose = "samples"
            if not isinstance(self.most, int) and moved <= (self.most or 0) * known and self.odd:
                (moved, known), whose = self.odd, "known samples with new rows"
            note(
                f"{moved:,} of {known:,} {whose} have another cluster, more than "
                f"--max-moved {self.said}."
            )
            raise click.exceptions.Exit(errors.MOVED[1])
