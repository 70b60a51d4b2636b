"""The command convert: a state of one kind becomes one of another."""

from __future__ import annotations

from pathlib import Path

import click

from viewfold.cli import _options as opt
from viewfold.cli.command import Whole, argument
from viewfold.cli.console import progress, tell


@opt.state
@argument(
    "target",
    metavar="TARGET",
    type=opt.StatePath(),
    help="State to write: a .vf file or a .vfd folder.",
)
@click.option("--buckets", metavar="N", type=Whole(min=1), help="Number of buckets of the folder.")
@opt.wait
@opt.as_json
def convert(state: Path, target: Path, buckets: int | None, wait: float, as_json: bool) -> None:
    """Write a state as a .vfd folder of buckets, as one .vf file, or with other buckets.

    The new state has everything, earlier states included. The old one stays as it is.
    """
    from viewfold.store import convert as write_anew
    from viewfold.store import store_of

    with progress(f"converting {state}"):
        write_anew(state, target, n_buckets=buckets, wait=wait)
    size = store_of(target).size()
    facts = {"file": str(target), "source": str(state), "bytes": size}
    tell(as_json, facts, f"{target} is written ({size / 1e6:.1f} MB).")
