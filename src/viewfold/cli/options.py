"""The options and arguments that several commands share, and what they mean."""

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
from viewfold.app.summaries import AUTO
from viewfold.cli.command import PATH, Argument
from viewfold.cli.console import note, print_json, tell

if TYPE_CHECKING:
    from viewfold._util.table import Table

Command = Callable[..., None]
Decorator = Callable[[Command], Command]
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


def split_names(context: Any, parameter: Any, text: str | None) -> list[str] | None:
    """Return the names that an option lists: comma-separated, quoted where they hold a comma."""
    return None if text is None else next(csv.reader([text], skipinitialspace=True), [])


def parse_share(text: str, name: str) -> float:
    """Return a number of samples, or a part of them for a percentage or a fraction."""
    number = text.strip().removesuffix("%")
    percent = number != text.strip()
    try:
        found = float(number) / (100 if percent else 1)
    except ValueError:
        found = -1.0
    whole = number.isdecimal() and not percent
    if not (0 <= found <= 1 or whole):
        raise ValueError(f"{name} {text!r} is not a number. Give one such as 100, or 50%.")
    return int(number) if whole else found


def argument(name: str, *, help: str, **more: Any) -> Decorator:
    return click.argument(name, cls=Argument, help=help, **more)


def add_options(*options: Decorator) -> Decorator:
    """Return a decorator that adds several options to a command, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):  # click lists first what was added last
            command = option(command)
        return command

    return decorate


def option(names: str, metavar: str, help: str, **more: Any) -> Decorator:
    """Return an option that takes a value; `names` are those of click, with spaces between them."""
    return click.option(*names.split(), metavar=metavar, help=help, **more)


def flag(names: str, help: str) -> Decorator:
    return click.option(*names.split(), is_flag=True, help=help)


def _share_option(name: str, help: str) -> Decorator:
    def parse(context: Any, parameter: Any, text: str | None) -> float | None:
        return None if text is None else parse_share(text, name)

    return option(name, "N|P%", help, callback=parse)


state = argument(
    "state", metavar="STATE.vf", type=StatePath(), help="State file (.vf) or folder (.vfd)."
)
id_column = option("--id id_column", "COLUMN", "Column that holds the sample ids.")
no_id = flag("--no-id", "The file has no ids: identify samples by their row number.")
similar_ids = click.option(
    "--similar-ids",
    type=click.Choice(["refuse", "match", "new"]),
    default="refuse",
    help="What to do with ids that differ from known ones only in case, spaces, leading zeros or "
    "the encoding of accents: refuse the file, match the known samples, or add new samples.",
)
min_shared = _share_option(
    "--min-shared", "Refuse the view if fewer of its samples are known, for instance 100 or 50%."
)
max_moved = _share_option(
    "--max-moved",
    "Exit with code 13 if more known samples change their cluster, for instance 100 or 5%. The "
    "command still does its work.",
)
view = option(
    "--view",
    "NAME",
    "Name of the view; by default, the view is named after its file. If the file holds several "
    "views, use only this one.",
)
min_confidence = option(
    "--min-confidence",
    "P",
    "Give samples with a lower confidence the cluster -1. The state file does not change.",
    type=float,
)
max_novelty = option(
    "--max-novelty",
    "P",
    "Give samples with a higher novelty the cluster -1; 0.99 includes 1 % of known samples.",
    type=float,
)
as_json = flag("--json as_json", "Print the answer as JSON.")
wait = option(
    "--wait",
    "SECONDS",
    "How long to wait while another program writes the state.",
    type=Seconds(min=0),
    default=60,
)
keep = option(
    "--keep",
    "N",
    "How many earlier states the file keeps from now on, for undo. Each takes as much space as the"
    " present state. A new file keeps 1.",
    type=Whole(min=0),
)
raw = flag(
    "--raw",
    "In CSV and TSV, do not put an apostrophe before text that a spreadsheet would run as a "
    "formula.",
)


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


def file_argument(says: str, *, several: bool = False) -> Decorator:
    says += " It may be - for standard input, or an address such as s3://… or https://…"
    if several:
        return argument("files", nargs=-1, required=True, metavar="FILE", type=FILE, help=says)
    return argument("file", metavar="FILE", type=FILE, help=says)


FILE_FLAGS: dict[str, Decorator] = {
    "sheet": option(
        "--sheet",
        "NAME",
        "Sheet of an Excel file to read. Repeat it for several sheets.",
        multiple=True,
    ),
    "encoding": option("--encoding", "NAME", "Encoding of a text file, for instance cp1252."),
    "decimal": option("--decimal", ".|,", "Decimal sign in a text file."),
    "thousands": option(
        "--thousands", "SIGN", "Thousands separator in a text file: , . ' or a space."
    ),
    "day_first": click.option(
        "--day-first/--month-first",
        default=None,
        help="Read 03/04/2024 as 3 April or as March 4, if no cell of the column decides.",
    ),
    "layer": option("--layer", "NAME", "Layer of an AnnData file to use instead of X."),
    "use_rep": option(
        "--rep use_rep",
        "NAME",
        "Entry of obsm in an AnnData file to use instead of X, such as X_pca.",
    ),
}
ROWS_AND_COLUMNS: dict[str, Decorator] = {
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
        help="Predict missing cells from the other cells of their row (accept), or refuse the view "
        "(error).",
    ),
    **{
        name: click.option(
            f"--{name.replace('_', '-')}", metavar="A,B,…", callback=split_names, help=says
        )
        for name, says in {
            "columns": "Use only these columns.",
            "drop": "Leave out these columns.",
            "categories": "Treat these columns as categories. Columns of text with few different "
            "values always are.",
            "empty_markers": "Texts that mark a missing cell, instead of NA, n/a, ., -, ? and the "
            "like.",
        }.items()
    },
    "batch": click.option(
        "--batch",
        metavar="COLUMN",
        help="The column that says which batch (site, machine, run) a row is from. What batches "
        "differ by is removed, real differences too if they go along with the batch.",
    ),
    "as_is": flag(
        "--as-is",
        "Clean nothing. By default, viewfold leaves out title rows, totals and repeated rows, "
        "reads currencies, percentages and dates, and says so.",
    ),
    "strict": flag(
        "--strict",
        "Refuse a file with columns of free text instead of leaving these out, and rows of a known "
        "view that look unlike earlier ones or lack columns (exit code 14).",
    ),
}
READING = (*ROWS_AND_COLUMNS, "rename", *FILE_FLAGS)

# The headings of a help page, and the options below them; all others stand first, in "Options".
HEADINGS = {
    "How the file is read": READING,
    "Ids": ("no_id", "similar_ids", "min_shared"),
    "Clusters": ("max_moved", "unconnected", "method", "seed"),
    "State file": ("quarantine", "keep", "wait"),
    "Large data": ("engine", "address", "memory", "buckets", "scratch"),
}


def _check_renamed(context: Any, parameter: Any, given: tuple[str, ...]) -> dict[str, str]:
    pairs = [one.partition("=") for one in given]
    if not all(old and new for old, _, new in pairs):
        raise click.BadParameter("expected OLD=NEW, the known name of a column and its new one.")
    return {old: new for old, _, new in pairs}


rename = option(
    "--rename",
    "OLD=NEW",
    "Read column NEW of the file as column OLD of a known view; add remembers it. Repeat it for "
    "each column.",
    multiple=True,
    callback=_check_renamed,
)


def pop_reading(given: dict[str, Any]) -> tuple[str | bool | None, dict[str, Any], dict[str, Any]]:
    """Take what is said about ids, the file (keywords of `File`) and its rows (of `as_view`).

    Ids are a column, False if there are none, None if nothing is said.
    """
    column, none = given.pop("id_column"), given.pop("no_id")
    if none and column is not None:
        raise ValueError("--id names a column of ids, --no-id says that there is none. Choose one.")
    of_file, of_rows = (
        {name: value for name in names if (value := given.pop(name, None)) not in (None, "", ())}
        for names in (FILE_FLAGS, ROWS_AND_COLUMNS)
    )
    return False if none else column, of_file, of_rows


def views_of_files(
    files: Sequence[File], names: Sequence[str], said: dict[str, Any]
) -> tuple[File | list[File] | dict[str, File], str | None]:
    """Return rows of known views as `predict_frame` takes them, and which view one file holds.

    Of several files, an option goes to those about whose format it says something.
    """
    if said:
        from viewfold.data.files import options_of

        fit = [tuple(said) if (known := options_of(file)) is None else known for file in files]
        for_all = {name for name in said if not any(name in known for known in fit)}
        files = [
            File(file.path, **{n: v for n, v in said.items() if n in known or n in for_all})
            for file, known in zip(files, fit, strict=True)
        ]
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


def delivers(command: Command) -> Command:
    """Let a command take the options about a table; it gets an `Output`, which can be written."""

    @wraps(command)
    def run(output: Path | None, raw: bool, as_json: bool, **given: Any) -> None:
        inputs = (given["state"], *given.get("files", ()))
        if output is not None:
            tables.check(output, tables.TABLES, inputs)
        command(output=Output(output, inputs, raw, as_json), **given)

    written = click.option(
        "-o",
        "--output",
        type=PATH,
        help="Write to this file (.csv, .tsv, .parquet, .arrow, .xlsx or .jsonl) instead of "
        "standard output.",
    )
    return add_options(written, raw, as_json)(run)


# -- which engine computes with a .vfd folder

ENGINE: dict[str, Decorator] = {
    "engine": option(
        "--engine",
        "local|dask|spark",
        "Where to compute with a .vfd folder: on this machine, or on a Dask or Spark cluster.",
    ),
    "address": option("--address", "URL", "Address of the Dask scheduler or the Spark master."),
    "memory": option("--memory", "SIZE", "Memory of all workers together; 4GB by default."),
    "buckets": option("--buckets", "N", "Number of buckets of a new folder.", type=Whole(min=1)),
    "scratch": option(
        "--scratch", "FOLDER", "Folder or address for temporary rows that all workers can reach."
    ),
}


def uses_engine(command: Command) -> Command:
    """Let a command that has an argument `state` take the options about engines."""

    @wraps(command)
    def run(**given: Any) -> None:
        said = {name: given.pop(name) or None for name in ENGINE}
        file = given.get("file") or next(iter(given.get("files", ())), None)
        with _engine(given["state"], None if file is None else str(file), said):
            command(**given)

    return add_options(*ENGINE.values())(run)


@contextmanager
def _engine(state: Path, file: str | None, said: dict[str, Any]) -> Iterator[None]:
    """Let the engine that was named work on the state."""
    from viewfold.store import is_folder

    if not is_folder(state):
        given = [f"--{name}" for name, value in said.items() if value is not None]
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
        n_bytes=_count_bytes(file),
        folder=said["scratch"],
    )
    with opened as engine, using(engine):
        yield


def _count_bytes(file: str | None) -> int | None:
    """Return how many bytes the files of a view have, None if that is not known."""
    if file is None or "://" in file or file == "-":
        return None
    paths = [Path(file)] if Path(file).exists() else [Path(found) for found in glob(file)]
    inside = [one for path in paths for one in (path.rglob("*") if path.is_dir() else [path])]
    return sum(path.stat().st_size for path in inside if path.is_file()) or None


# -- --max-moved: whether too many samples moved, for a job that nobody watches


def too_many_moved(
    most: float | None, moved: int, known: int, folds: Sequence[dict[str, Any]] = ()
) -> tuple[int, int, str] | None:
    """Return how many of whom moved, if they are more than `most`.

    A share also holds for the known samples with a row in each delivery: a small wrong delivery
    moves few of all samples, and most of its own.
    """
    if most is None:
        return None
    if isinstance(most, int):
        return (moved, known, "samples") if moved > most else None
    if moved > most * known:
        return moved, known, "samples"
    for fold in folds:
        had, own = fold["shared"] + fold["corrected"], fold["moved"] - fold["others_moved"]
        if fold["update"] and own >= FEWEST and own > most * had:
            return own, had, "known samples with new rows"
    return None


def exit_if_moved(most: float | None, found: tuple[int, int, str] | None) -> None:
    """End the command, with an exit code of its own, if more moved than should."""
    if most is not None and found is not None:
        moved, known, whose = found
        limit = most if isinstance(most, int) else f"{100 * most:g}%"
        note(f"{moved:,} of {known:,} {whose} have another cluster, more than --max-moved {limit}.")
        raise click.exceptions.Exit(errors.MOVED[1])
