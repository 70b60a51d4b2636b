"""The options that say who works on a ``.vfd`` folder, for every command that may take long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from glob import glob
from pathlib import Path
from typing import Any

import click

from viewfold.cli.command import Whole, section

OPTIONS = {
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
        "--buckets",
        metavar="N",
        type=Whole(min=1),
        help="Number of buckets of a new folder.",
    ),
    "scratch": click.option(
        "--scratch",
        metavar="FOLDER",
        help="Folder or address for temporary rows, which all workers can reach.",
    ),
}


def works(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that has an argument `state` take these options."""

    @wraps(command)
    def run(**given: Any) -> None:
        said = {name: given.pop(name) or None for name in OPTIONS}
        file = given.get("file") or next(iter(given.get("files", ())), None)
        with _working(given["state"], None if file is None else str(file), said):
            command(**given)

    return section("Large data", *OPTIONS.values())(run)


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

    known = _buckets(state)
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


def _buckets(state: Path) -> int | None:
    """Return how many buckets a folder has, None if there is none yet."""
    from viewfold.store.folder import Folder, latest_manifest

    found = latest_manifest(Folder.at(state))
    return None if found is None else found.states[0].n_buckets


def _bytes(file: str | None) -> int | None:
    """Return how many bytes the files of a view have, None if that is not known."""
    if file is None or "://" in file or file == "-":
        return None
    paths = [Path(file)] if Path(file).exists() else [Path(found) for found in glob(file)]
    inside = [one for path in paths for one in (path.rglob("*") if path.is_dir() else [path])]
    return sum(path.stat().st_size for path in inside if path.is_file()) or None
