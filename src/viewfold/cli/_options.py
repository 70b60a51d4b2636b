"""The options and arguments that several commands have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, cast

import typer

from viewfold._file import File
from viewfold.actions.numbers import AUTO


class Similar(StrEnum):
    """What to do with ids that are almost the same."""

    refuse = "refuse"
    match = "match"
    new = "new"


class Groups(StrEnum):
    """What to do with clusters of groups of samples that no view connects."""

    pair = "pair"
    separate = "separate"


class Empty(StrEnum):
    """What rows of zeros are."""

    absent = "absent"
    keep = "keep"


class Gaps(StrEnum):
    """What is done with missing cells."""

    accept = "accept"
    error = "error"


def _number_of_clusters(text: str) -> int:
    if text.strip().lower() == "auto":
        return AUTO
    number = text.strip()
    if not number.isdecimal() or int(number) < 1:
        raise typer.BadParameter(f"{text!r} is neither a number such as 10, nor auto.")
    return int(number)


def state_path(text: str) -> Path:
    """Return where a state is; an address stays as it is, which no path does."""
    return cast(Path, File(text)) if "://" in text else Path(text)


State = Annotated[
    Path,
    typer.Argument(
        metavar="STATE.vf", help="The state: a .vf file or a .vfd folder.", parser=state_path
    ),
]
Id = Annotated[
    str | None,
    typer.Option("--id", help="The column that holds the sample ids.", metavar="COLUMN"),
]
NoId = Annotated[
    bool,
    typer.Option("--no-id", help="No column holds ids: samples are known by their row number."),
]
SimilarIds = Annotated[
    Similar,
    typer.Option(
        "--similar-ids",
        help="Ids that differ only in case, space, leading zeros or accents as written: refuse "
        "them, match them with the known ones, or take them for new samples.",
    ),
]
MinShared = Annotated[
    str | None,
    typer.Option(
        "--min-shared",
        help="Refuse a view of which fewer samples are known, for instance 100 or 50%.",
        metavar="N|P%",
    ),
]
MaxMoved = Annotated[
    str | None,
    typer.Option(
        "--max-moved",
        help="End with exit code 13 if more known samples have another cluster now, for instance "
        "5% or 100; everything is done all the same.",
        metavar="N|P%",
    ),
]
EmptyRows = Annotated[
    Empty,
    typer.Option(
        "--empty-rows",
        help="Rows of zeros, in a view of non-negative features of which other rows have ten or "
        "more: samples that the view lacks (absent), or samples (keep).",
    ),
]
MissingCells = Annotated[
    Gaps,
    typer.Option(
        "--missing-cells",
        help="Missing cells in rows that have others: predict them from those (accept), or refuse "
        "the view (error).",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option("--columns", help="The columns to take.", metavar="A,B,…"),
]
Drop = Annotated[
    str | None,
    typer.Option("--drop", help="Columns to leave out.", metavar="A,B,…"),
]
Categories = Annotated[
    str | None,
    typer.Option(
        "--categories",
        help="Columns that are categories, whatever they look like; text with few levels is one "
        "unasked.",
        metavar="A,B,…",
    ),
]
EmptyMarkers = Annotated[
    str | None,
    typer.Option(
        "--empty-markers",
        help="What stands for a missing cell in text, instead of NA, n/a, ., -, ? and the like.",
        metavar="A,B,…",
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Refuse columns of free text instead of leaving them out."),
]
ViewName = Annotated[
    str | None,
    typer.Option(
        "--view",
        help="What the view is called (the file's name if not given); of a file that holds "
        "several views, the one to take.",
        metavar="NAME",
    ),
]
ViewNames = Annotated[
    list[str] | None,
    typer.Option(
        "--view",
        help="The known view that a file belongs to (the one that is called like the file, or the "
        "only one, if not given); once for each file, in the same order.",
        metavar="NAME",
    ),
]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        "--min-confidence",
        help="Samples that are less certain have the cluster -1; the file stays as it is.",
        metavar="P",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Say what would be done, and write nothing."),
]
Wait = Annotated[float, typer.Option("--wait", help="Seconds to wait for another writer.", min=0)]
Clusters = Annotated[
    int | None,
    typer.Option(
        "--clusters",
        "-k",
        help="How many clusters; with auto, the number that stands out (see viewfold suggest).",
        metavar="K|auto",
        parser=_number_of_clusters,
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        help="viewfold, the paper's fcmvc, or a method that another package brings along.",
        metavar="NAME",
    ),
]
Unconnected = Annotated[
    Groups | None,
    typer.Option(
        "--unconnected",
        help="Pair clusters of groups that no view connects by size (pair), or not (separate).",
    ),
]
Keep = Annotated[
    int | None,
    typer.Option(
        "--keep",
        help="How many earlier states the file keeps from now on, for undo and restore; each is as "
        "large as the state of now. 1 in a new file.",
        metavar="N",
        min=0,
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", help="Seed of everything that is random.", min=0, max=2**32 - 1)
]
Private = Annotated[
    bool,
    typer.Option(
        "--private",
        help="Keep no encoders, those of earlier views included; then there is no predict. See "
        "docs/privacy.md for what a file still tells.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        help="Write here (.csv, .tsv, .parquet, .arrow, .xlsx or .jsonl) instead.",
    ),
]
