"""The manifest of a ``.vfd`` folder: which files are the state, and which can be returned to.

It is written last, under a number that nobody has used, so that a state is there as a whole or not
at all. The highest number is the state of now.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from viewfold._util.version import __version__
from viewfold.errors import (
    BusyError,
    DamagedFileError,
    NewerFormatError,
    StateFileError,
    UnreadableError,
)
from viewfold.store._catalogue import MOST_KEPT, check_json
from viewfold.store.folder import DRAFT, Folder, reading
from viewfold.store.tables import CHANGED

VERSION = 1
"""Version of the folder's format; that of the tables in it is told by their table ``meta``."""

FORMAT = "viewfold folder"
NAME = re.compile(r"manifest-(\d{6,12})\.json")
GENERATION = re.compile(r"(\d{6,12})-[0-9a-f]{8}")
TABLES = ("meta", "views", "arrays", "log", "steps")
MOST_BUCKETS = 10**6

T = TypeVar("T")


@dataclass(frozen=True)
class Bucket:
    """A file with samples: its bucket, how many rows and bytes, and the digest of each column."""

    bucket: int
    rows: int
    bytes: int
    digests: dict[str, str]

    @property
    def file(self) -> str:
        """The name of the file."""
        return f"samples-{self.bucket:05d}.parquet"


@dataclass(frozen=True)
class Generation:
    """The files of one state.

    Attributes
    ----------
    folder : str
        Where they are.
    n_buckets : int
        How many buckets there are; those without samples have no file.
    tables : dict
        ``bytes`` and ``sha256`` of the file of each small table.
    samples : tuple of Bucket
        The files of the table of samples.
    """

    folder: str
    n_buckets: int
    tables: dict[str, dict[str, Any]]
    samples: tuple[Bucket, ...] = ()

    @property
    def n_samples(self) -> int:
        """How many samples there are."""
        return sum(one.rows for one in self.samples)

    @property
    def size(self) -> int:
        """How many bytes all files have."""
        small = sum(int(facts["bytes"]) for facts in self.tables.values())
        return small + sum(one.bytes for one in self.samples)


@dataclass(frozen=True)
class Manifest:
    """What a folder holds.

    Attributes
    ----------
    generation : int
        Its number.
    keep : int
        How many states to return to there may be.
    states : tuple of Generation
        The state of now, then those that can be returned to, the latest first.
    erases : bool
        Whether nothing may be left of earlier generations, not even for who reads them.
    """

    generation: int
    keep: int
    states: tuple[Generation, ...]
    erases: bool = False
    written_by: str = field(default=f"viewfold {__version__}")

    @property
    def file(self) -> str:
        """The name of the file."""
        return f"manifest-{self.generation:06d}.json"

    def to_json(self) -> bytes:
        """Return what is in the file."""
        said = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps({**said, "digest": _digest(said)}, indent=1).encode()


def _digest(said: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def new_folder(generation: int) -> str:
    """Return a name for the files of a state; two writers never have the same."""
    return f"{generation:06d}-{uuid.uuid4().hex[:8]}"


def _parsed(text: bytes, number: int) -> Manifest:
    check_json(text.decode())
    said = json.loads(text)
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise UnreadableError("it is not one of viewfold", StateFileError)
    if not isinstance(said.get("version"), int) or said["version"] > VERSION:
        raise UnreadableError(
            f"the folder has format {said.get('version')} and this viewfold reads up to {VERSION}; "
            "install a newer viewfold",
            NewerFormatError,
        )
    if said.pop("digest", None) != _digest(said):
        raise UnreadableError(CHANGED)
    states = tuple(
        Generation(
            one["folder"],
            one["n_buckets"],
            one["tables"],
            tuple(Bucket(**bucket) for bucket in one["samples"]),
        )
        for one in said["states"]
    )
    facts = {name: said[name] for name in ("generation", "keep", "erases", "written_by")}
    found = Manifest(**facts, states=states)
    for wrong in _problems(found, number):
        raise UnreadableError(wrong)
    return found


def _problems(manifest: Manifest, number: int) -> Any:
    if manifest.generation != number or not manifest.states:
        yield "it is the manifest of another generation"
    if not isinstance(manifest.keep, int) or not 0 <= manifest.keep <= MOST_KEPT:
        yield f"it keeps {manifest.keep!r} states to return to"
    for one in manifest.states:
        if not GENERATION.fullmatch(one.folder) or set(one.tables) != set(TABLES):
            yield f"it names {one.folder!r}, which is no folder of a state"
        buckets = [bucket.bucket for bucket in one.samples]
        if not (isinstance(one.n_buckets, int) and 0 < one.n_buckets <= MOST_BUCKETS):
            yield f"it has {one.n_buckets!r} buckets"
        elif buckets != sorted(set(buckets)) or not all(0 <= i < one.n_buckets for i in buckets):
            yield f"its buckets are not among the {one.n_buckets} that it has"


def numbers(folder: Folder) -> list[int]:
    """Return the numbers of all manifests in a folder, the highest first."""
    found = [NAME.fullmatch(name) for name in folder.names()]
    return sorted((int(one[1]) for one in found if one), reverse=True)


def newer_than_now(folder: Folder) -> tuple[int, list[str]]:
    """Return the number of the manifest of now, and the states that were written after it."""
    now = numbers(folder)[0]
    made = [(name, GENERATION.fullmatch(name)) for name in folder.names()]
    return now, sorted(name for name, found in made if found and int(found[1]) > now)


def read(folder: Folder, number: int) -> Manifest:
    """Read and check a manifest."""
    name = f"manifest-{number:06d}.json"
    with reading(folder, name):
        return _parsed(folder.read(name), number)


def latest(folder: Folder) -> Manifest | None:
    """Return the manifest of now, None if there is none."""
    while True:
        here = numbers(folder)
        if not here:
            return None
        try:
            return read(folder, here[0])
        except StateFileError:
            if numbers(folder)[:1] == here[:1]:  # else it was replaced meanwhile
                raise


def current(folder: Folder) -> Manifest:
    """Return the manifest of now; there has to be one."""
    found = latest(folder)
    if found is not None:
        return found
    if folder.names():
        raise StateFileError(f"{folder} holds no manifest: it is not a folder of viewfold's.")
    raise FileNotFoundError(f"There is no folder {folder}.")


def steady(folder: Folder, work: Callable[[Manifest], T]) -> T:
    """Return what is read of the state of now; again, if another took its place meanwhile."""
    while True:
        manifest = current(folder)
        try:
            return work(manifest)
        except DamagedFileError:
            if numbers(folder)[:1] == [manifest.generation]:
                raise


def publish(folder: Folder, manifest: Manifest) -> None:
    """Make a generation the state of now, unless another program was faster.

    Raises
    ------
    BusyError
    """
    try:
        folder.create(manifest.file, manifest.to_json())
        first = numbers(folder)[0]
        if first == manifest.generation:
            return
        folder.remove(manifest.file)  # its number was used, and cleared away since
    except FileExistsError:
        pass
    raise BusyError(changed(folder))


def changed(folder: Folder) -> str:
    """Say that another writer was faster."""
    return (
        f"{folder.name} was changed by another program since it was read. Nothing was written: "
        "try again."
    )


def clear(folder: Folder, manifest: Manifest | None, *, alone: bool) -> None:
    """Remove what neither this generation needs, nor those who read the one before it.

    Parameters
    ----------
    folder : Folder
        Where.
    manifest : Manifest or None
        That of now.
    alone : bool
        Whether no other writer can be at work; if one can, its files are of a higher number.
    """
    here, names = numbers(folder), folder.names()
    number = 0 if manifest is None else manifest.generation
    needed = [] if manifest is None else [manifest]
    if manifest is not None and not manifest.erases:
        with contextlib.suppress(StateFileError):  # a damaged one is of no use to anybody
            needed += [read(folder, i) for i in here if i < number][:1]
    kept = {one.folder for manifest in needed for one in manifest.states}
    for i in here:
        if i not in {one.generation for one in needed} and i <= number:
            folder.remove(f"manifest-{i:06d}.json")
    for name in names:
        made = GENERATION.fullmatch(name)
        if (made and name not in kept and (alone or int(made[1]) <= number)) or (
            alone and name.endswith(DRAFT)
        ):
            folder.remove(name)
