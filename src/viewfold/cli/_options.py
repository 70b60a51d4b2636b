"""The options and arguments that several commands have, as decorators."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import click

from viewfold._util.file import File
from viewfold.app.numbers import AUTO
from viewfold.cli.command import PATH, Decorator, Whole, argument, section

READING = "How the file is read"
"""The heading of options about the file."""


class StatePath(click.Path):
    """Where a state is; an address stays as it is, which no path does."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Path:
        """Return what was typed as a path, or as a file elsewhere."""
        return cast(Path, File(value)) if "://" in value else Path(value)


class Seconds(click.FloatRange):
    """How long something may take."""

    name = "number of seconds"


def number_of_clusters(text: str) -> int:
    """Return the number of clusters that was typed, `AUTO` for auto."""
    number = text.strip()
    if number.lower() == "auto":
        return AUTO
    if not number.isdecimal() or int(number) < 1:
        raise click.BadParameter(f"{text!r} is neither a number such as 10, nor auto.")
    return int(number)


FILE = click.Path(readable=False, path_type=File)

state = argument(
    "state", metavar="STATE.vf", type=StatePath(), help="The state: a .vf file or a .vfd folder."
)
id_column = click.option(
    "--id", "id_column", metavar="COLUMN", help="The column that holds the sample ids."
)
no_id = click.option(
    "--no-id", is_flag=True, help="No column holds ids: samples are known by their row number."
)
similar_ids = click.option(
    "--similar-ids",
    type=click.Choice(["refuse", "match", "new"]),
    default="refuse",
    help="Ids that differ only in case, space, leading zeros or accents as written: refuse "
    "them, match them with the known ones, or take them for new samples.",
)
min_shared = click.option(
    "--min-shared",
    metavar="N|P%",
    help="Refuse a view of which fewer samples are known, for instance 100 or 50%.",
)
max_moved = click.option(
    "--max-moved",
    metavar="N|P%",
    help="End with exit code 13 if more known samples have another cluster now, for instance "
    "5% or 100; everything is done all the same.",
)
rows_and_columns = section(
    READING,
    click.option(
        "--empty-rows",
        type=click.Choice(["absent", "keep"]),
        default="absent",
        help="Rows of zeros, in a view of non-negative features of which other rows have ten or "
        "more: samples that the view lacks (absent), or samples (keep).",
    ),
    click.option(
        "--missing-cells",
        type=click.Choice(["accept", "error"]),
        default="accept",
        help="Missing cells in rows that have others: predict them from those (accept), or refuse "
        "the view (error).",
    ),
    click.option("--columns", metavar="A,B,…", help="The columns to take."),
    click.option("--drop", metavar="A,B,…", help="Columns to leave out."),
    click.option(
        "--categories",
        metavar="A,B,…",
        help="Columns that are categories, whatever they look like; text with few levels is one "
        "unasked.",
    ),
    click.option(
        "--empty-markers",
        metavar="A,B,…",
        help="What stands for a missing cell in text, instead of NA, n/a, ., -, ? and the like.",
    ),
    click.option(
        "--strict", is_flag=True, help="Refuse columns of free text instead of leaving them out."
    ),
)
"""What `reading_options` takes."""
view = click.option(
    "--view",
    metavar="NAME",
    help="What the view is called (the file's name if not given); of a file that holds several "
    "views, the one to take.",
)
min_confidence = click.option(
    "--min-confidence",
    metavar="P",
    type=float,
    help="Samples that are less certain have the cluster -1; the file stays as it is.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
wait = click.option(
    "--wait",
    metavar="SECONDS",
    type=Seconds(min=0),
    default=60,
    help="Seconds to wait for another writer.",
)
method = click.option(
    "--method",
    metavar="NAME",
    default="viewfold",
    help="viewfold, the paper's fcmvc, or a method that another package brings along.",
)
keep = click.option(
    "--keep",
    metavar="N",
    type=Whole(min=0),
    help="How many earlier states the file keeps from now on, for undo and restore; each is as "
    "large as the state of now. 1 in a new file.",
)
seed = click.option(
    "--seed",
    metavar="N",
    type=Whole(0, 2**32 - 1),
    default=0,
    help="Seed of everything that is random.",
)
private = click.option(
    "--private",
    is_flag=True,
    help="Keep no encoders, those of earlier views included; then there is no predict. See "
    "docs/privacy.md for what a file still tells.",
)
output = click.option(
    "-o",
    "--output",
    type=PATH,
    help="Write here (.csv, .tsv, .parquet, .arrow, .xlsx or .jsonl) instead.",
)
raw = click.option(
    "--raw",
    is_flag=True,
    help="In CSV and TSV, leave text as it is that a spreadsheet would run as a formula; without "
    "this it begins with an apostrophe.",
)
yes = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def clusters(*, required: bool = False) -> Decorator:
    """Return the option that says how many clusters there should be."""
    return click.option(
        "--clusters",
        "-k",
        metavar="K|auto",
        type=number_of_clusters,
        required=required,
        help="How many clusters; with auto, the number that stands out (see viewfold suggest).",
    )
