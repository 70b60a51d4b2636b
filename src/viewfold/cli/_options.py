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
rows_and_columns = section(
    READING,
    click.option(
        "--empty-rows",
        type=click.Choice(["absent", "keep"]),
        default="absent",
        help="What a row of zeros means, in a view of non-negative features whose other rows have "
        "ten or more above zero: the view lacks the sample (absent), or the zeros are data (keep).",
    ),
    click.option(
        "--missing-cells",
        type=click.Choice(["accept", "error"]),
        default="accept",
        help="Missing cells in rows that have other values: predict them from those "
        "(accept), or refuse the view (error).",
    ),
    click.option("--columns", metavar="A,B,…", help="Use only these columns."),
    click.option("--drop", metavar="A,B,…", help="Leave out these columns."),
    click.option(
        "--categories",
        metavar="A,B,…",
        help="Take these columns for categories. Columns of text with few different values "
        "are categories anyway.",
    ),
    click.option(
        "--empty-markers",
        metavar="A,B,…",
        help="Texts that mark a missing cell, instead of NA, n/a, ., -, ? and the like.",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="Refuse a file with columns of free text, instead of leaving these out.",
    ),
)
"""What `reading_options` takes."""
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
    "--seed",
    metavar="N",
    type=Whole(0, 2**32 - 1),
    default=0,
    help="Random seed of a new state.",
)
private = click.option(
    "--private",
    is_flag=True,
    help="Keep no encoders, and remove those of earlier views; predict then does not "
    "work. docs/privacy.md says what the file still reveals.",
)
output = click.option(
    "-o",
    "--output",
    type=PATH,
    help="Write to this file (.csv, .tsv, .parquet, .arrow, .xlsx or .jsonl) instead of "
    "standard output.",
)
raw = click.option(
    "--raw",
    is_flag=True,
    help="In CSV and TSV, do not put an apostrophe before text that a spreadsheet would "
    "run as a formula.",
)
yes = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


def clusters(*, required: bool = False) -> Decorator:
    """Return the option that says how many clusters there should be."""
    return click.option(
        "--clusters",
        "-k",
        metavar="K|auto",
        type=number_of_clusters,
        required=required,
        help="Number of clusters, or auto for the one that stands out (see viewfold suggest)."
        + ("" if required else " A new state needs it."),
    )
