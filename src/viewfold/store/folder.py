"""Where the files of a ``.vfd`` folder are, and its manifest: which of them are the state.

The folder is on this machine or on any file system that fsspec knows. A file appears whole or not
at all. The manifest is written last, under a number that nobody has used, so that a state is there
as a whole or not at all; the highest number is the state of now.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb

from viewfold._util.file import plain
from viewfold._util.messages import lacking, needed
from viewfold._util.replace import flush, sync
from viewfold._util.version import __version__
from viewfold.errors import (
    BusyError,
    DamagedFileError,
    MissingExtraError,
    StateFileError,
    UnreadableError,
    ViewfoldError,
)
from viewfold.rows.bucket_files import filesystem, is_remote
from viewfold.store.check import check_json, check_keep
from viewfold.store.lock import Identity, identity
from viewfold.store.tables import CHANGED, FORMAT, SMALL, check_format

pa = needed("pyarrow", "parquet", "A .vfd folder")

DRAFT = ".draft"  # how the names of files end that are not complete yet


@dataclass(frozen=True)
class Folder:
    """A folder: a path of this machine without links in it, or an address."""

    address: str

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Folder:
        """Return the folder of a path, also of one that is not there yet."""
        name = os.fspath(path)
        name = name.removeprefix("file://") if name.startswith("file:///") else name
        if not is_remote(name):
            return cls(os.path.realpath(name))
        folder = cls(name.rstrip("/"))
        try:
            filesystem(name)
        except MissingExtraError:
            raise
        except ImportError as error:
            raise lacking(str(folder), "remote", error) from None
        except ValueError as error:
            raise StateFileError(f"{folder}: {error}") from None
        return folder

    def __str__(self) -> str:
        return plain(self.address)

    @property
    def name(self) -> str:
        return str(self).replace("\\", "/").rpartition("/")[2]

    @property
    def remote(self) -> bool:
        return is_remote(self.address)

    def names(self) -> list[str]:
        """Return the names of all that is in it; none if it is not there."""
        if not self.remote:
            if os.path.lexists(self.address) and not os.path.isdir(self.address):
                raise StateFileError(f"{self} is a file, not a .vfd folder.")
            return os.listdir(self.address) if os.path.isdir(self.address) else []
        fs, inside = filesystem(self.address)
        fs.invalidate_cache()
        try:
            found = fs.ls(inside, detail=False)
        except FileNotFoundError:
            return []
        return [name.rstrip("/").rpartition("/")[2] for name in found if name.strip("/") != inside]

    def make(self, name: str = "") -> None:
        """Make it, or a folder in it; only its owner may read it, or who may read the outer one."""
        if self.remote:
            return
        if name:
            path = os.path.join(self.address, name)
            os.mkdir(path, 0o700)
            os.chmod(path, stat.S_IMODE(os.stat(self.address).st_mode))
        else:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.address, 0o700)

    def read(self, name: str) -> bytes:
        if not self.remote:
            with open(os.path.join(self.address, name), "rb") as file:
                return file.read()
        fs, inside = filesystem(f"{self.address}/{name}")
        held: bytes = fs.cat_file(inside)
        return held

    def open(self, name: str) -> Any:
        """Open a file for reading parts of it."""
        if not self.remote:
            return open(os.path.join(self.address, name), "rb")
        fs, inside = filesystem(f"{self.address}/{name}")
        return fs.open(inside, "rb")

    def write(self, name: str, data: bytes | memoryview) -> None:
        """Write a file; again, if a task is repeated."""
        if self.remote:
            fs, inside = filesystem(f"{self.address}/{name}")
            fs.pipe_file(inside, bytes(data))
            return
        with self._draft(name, data) as (draft, path):
            os.replace(draft, path)

    def create(self, name: str, data: bytes) -> None:
        """Write a file that must not be there yet, or raise FileExistsError."""
        if self.remote:
            fs, inside = filesystem(f"{self.address}/{name}")
            fs.pipe_file(inside, data, mode="create")
            return
        with self._draft(name, data) as (draft, path):
            try:
                os.link(draft, path)
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
                    raise
                # A file system without links, on which the lock has to be enough.
                if os.path.lexists(path):
                    raise FileExistsError(path) from None
                os.rename(draft, path)
        self.settle()

    def settle(self, name: str = "") -> None:
        """Wait until the names of files in it are on the disk."""
        if not self.remote:
            flush(Path(self.address, name))

    @contextmanager
    def _draft(self, name: str, data: bytes | memoryview) -> Iterator[tuple[str, str]]:
        path = os.path.join(self.address, name)
        draft = f"{path}.{uuid.uuid4().hex[:8]}{DRAFT}"
        mode = stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) & 0o666
        try:
            with open(draft, "xb") as file:
                if hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), mode)
                file.write(data)
                file.flush()
                sync(file.fileno(), path)
            yield draft, path
        finally:
            Path(draft).unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        if self.remote:
            fs, inside = filesystem(f"{self.address}/{name}")
            with contextlib.suppress(FileNotFoundError):
                fs.rm(inside, recursive=True)
            return
        path = os.path.join(self.address, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)


_POSSIBLE = (pa.ArrowException, duckdb.Error, OSError, ValueError, TypeError, LookupError)


@contextmanager
def understood(
    folder: Folder, name: str, possible: tuple[type[Exception], ...] = _POSSIBLE
) -> Iterator[None]:
    """Convert every exception about a file of a folder into one of viewfold's errors."""
    called = f"{folder.name}/{name}"
    try:
        yield
    except (ViewfoldError, PermissionError, IsADirectoryError):
        raise
    except UnreadableError as error:
        raise error.kind(f"Cannot read {called}: {error}.") from None
    except FileNotFoundError:
        raise DamagedFileError(
            f"{called} is not there. If another program has written {folder.name} since it was "
            "read, load it again; if not, the file was lost: use a copy of the folder."
        ) from None
    except possible as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the system, which says itself what is wrong; Arrow's have no number
        said = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise DamagedFileError(f"{called} is damaged ({said}). Use a copy of it.") from None


# -- the manifest

KIND = "viewfold folder"
NAME = re.compile(r"manifest-(\d{6,12})\.json")
GENERATION = re.compile(r"(\d{6,12})-[0-9a-f]{8}")
MOST_BUCKETS = 10**6


@dataclass(frozen=True)
class Bucket:
    """A file with samples: its bucket, how many rows and bytes, and the digest of each column."""

    bucket: int
    rows: int
    bytes: int
    digests: dict[str, str]

    @property
    def file(self) -> str:
        return f"samples-{self.bucket:05d}.parquet"


@dataclass(frozen=True)
class Generation:
    """The files of one state: where they are, and what they hold.

    Buckets without samples have no file. `tables` has ``bytes`` and ``sha256`` of each small table.
    """

    folder: str
    n_buckets: int
    tables: dict[str, dict[str, Any]]
    samples: tuple[Bucket, ...] = ()

    @property
    def n_samples(self) -> int:
        return sum(one.rows for one in self.samples)

    @property
    def size(self) -> int:
        small = sum(int(facts["bytes"]) for facts in self.tables.values())
        return small + sum(one.bytes for one in self.samples)


@dataclass(frozen=True)
class Manifest:
    """What a folder holds: the state of now, then those to return to, the latest first.

    `erases` says that nothing may be left of earlier generations, not even for who reads them.
    """

    generation: int
    keep: int
    states: tuple[Generation, ...]
    erases: bool = False
    written_by: str = field(default=f"viewfold {__version__}")

    @property
    def file(self) -> str:
        return f"manifest-{self.generation:06d}.json"

    def to_json(self) -> bytes:
        said = {"format": KIND, "version": FORMAT, **asdict(self)}
        return json.dumps({**said, "digest": _digest(said)}, indent=1).encode()


def _digest(said: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def new_folder(generation: int) -> str:
    """Return a name for the files of a state; two writers never have the same."""
    return f"{generation:06d}-{uuid.uuid4().hex[:8]}"


def _parse(text: bytes, number: int) -> Manifest:
    check_json(text.decode())
    said = json.loads(text)
    if not isinstance(said, dict) or said.get("format") != KIND:
        raise UnreadableError("it is not one of viewfold", StateFileError)
    check_format(said, "the folder")
    if said.pop("digest", None) != _digest(said):
        raise UnreadableError(CHANGED)
    states = tuple(
        Generation(**{**one, "samples": tuple(Bucket(**bucket) for bucket in one["samples"])})
        for one in said["states"]
    )
    if said["generation"] != number or not states:
        raise UnreadableError("it is the manifest of another generation")
    check_keep(said["keep"])
    for one in states:
        if not GENERATION.fullmatch(one.folder) or set(one.tables) != set(SMALL):
            raise UnreadableError(f"it names {one.folder!r}, which is no folder of a state")
        buckets = [bucket.bucket for bucket in one.samples]
        if not (isinstance(one.n_buckets, int) and 0 < one.n_buckets <= MOST_BUCKETS):
            raise UnreadableError(f"it has {one.n_buckets!r} buckets")
        if buckets != sorted(set(buckets)) or not all(0 <= i < one.n_buckets for i in buckets):
            raise UnreadableError(f"its buckets are not among the {one.n_buckets} that it has")
    facts = {name: said[name] for name in ("generation", "keep", "erases", "written_by")}
    return Manifest(**facts, states=states)


def manifest_numbers(folder: Folder) -> list[int]:
    """Return the numbers of all manifests in a folder, the highest first."""
    found = [NAME.fullmatch(name) for name in folder.names()]
    return sorted((int(one[1]) for one in found if one), reverse=True)


def newer_than_now(folder: Folder) -> tuple[int, list[str]]:
    """Return the number of the manifest of now, and the states that were written after it."""
    now, names = manifest_numbers(folder)[0], filter(GENERATION.fullmatch, folder.names())
    return now, sorted(name for name in names if int(name.partition("-")[0]) > now)


def read_manifest(folder: Folder, number: int) -> Manifest:
    """Read a manifest, which is never changed: one that was read a moment ago is known."""
    name = f"manifest-{number:06d}.json"
    with understood(folder, name):
        if folder.remote:
            return _parse(folder.read(name), number)
        return _read_once(folder, number, name, identity(os.path.join(folder.address, name)))


@lru_cache(4)
def _read_once(folder: Folder, number: int, name: str, _: Identity) -> Manifest:
    return _parse(folder.read(name), number)


def latest_manifest(folder: Folder) -> Manifest | None:
    """Return the manifest of now, None if there is none."""
    while True:
        here = manifest_numbers(folder)
        if not here:
            return None
        try:
            return read_manifest(folder, here[0])
        except StateFileError:
            if manifest_numbers(folder)[:1] == here[:1]:  # else it was replaced meanwhile
                raise


def current_manifest(folder: Folder) -> Manifest:
    """Return the manifest of now; there has to be one."""
    found = latest_manifest(folder)
    if found is not None:
        return found
    if folder.names():
        raise StateFileError(f"{folder} holds no manifest: it is not a folder of viewfold's.")
    raise FileNotFoundError(f"There is no folder {folder}.")


def publish(folder: Folder, manifest: Manifest) -> None:
    """Make a generation the state of now, unless another program was faster."""
    try:
        folder.create(manifest.file, manifest.to_json())
        if manifest_numbers(folder)[0] == manifest.generation:
            return
        folder.remove(manifest.file)  # its number was used, and cleared away since
    except FileExistsError:
        pass
    raise another_was_faster(folder)


def another_was_faster(folder: Folder) -> BusyError:
    return BusyError(
        f"{folder.name} was changed by another program since it was read. Nothing was written: "
        "try again."
    )


def clear(folder: Folder, manifest: Manifest | None, *, alone: bool) -> None:
    """Remove what neither this generation needs, nor those who read the one before it.

    Unless no other writer can be at work (`alone`), its files are of a higher number and stay.
    """
    here, names = manifest_numbers(folder), folder.names()
    number = 0 if manifest is None else manifest.generation
    needed = [] if manifest is None else [manifest]
    if manifest is not None and not manifest.erases:
        with contextlib.suppress(StateFileError):  # a damaged one is of no use to anybody
            needed += [read_manifest(folder, i) for i in here if i < number][:1]
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
