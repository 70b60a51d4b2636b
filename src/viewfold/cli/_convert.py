"""The command convert: a state of one kind becomes one of another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from viewfold._console import progress, tell
from viewfold.cli._options import Json, State, Wait, state_path


def convert(
    state: State,
    target: Annotated[
        Path,
        typer.Argument(
            metavar="TARGET", help="What to make: a .vf file or a .vfd folder.", parser=state_path
        ),
    ],
    buckets: Annotated[
        int | None,
        typer.Option("--buckets", help="How many buckets a folder gets.", metavar="N", min=1),
    ] = None,
    wait: Wait = 60,
    as_json: Json = False,
) -> None:
    """Write a state as a .vfd folder of buckets, as one file, or with other buckets.

    Everything comes along, states to return to included. The state stays as it is.
    """
    from viewfold.store import convert as write_anew
    from viewfold.store._kinds import store_of

    with progress(f"converting {state}"):
        write_anew(state, target, n_buckets=buckets, wait=wait)
    size = store_of(target).size(target)
    facts = {"file": str(target), "source": str(state), "bytes": size}
    tell(as_json, facts, f"{target} is written ({size / 1e6:.1f} MB).")
