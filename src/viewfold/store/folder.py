"""A folder on this machine, or on any file system that fsspec knows: a few things done with it.

A file appears whole or not at all, and one that must be new is never written over another.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from viewfold._util.file import plain
from viewfold._util.messages import lacking, needed
from viewfold._util.replace import flush, sync
from viewfold.errors import (
    DamagedFileError,
    MissingExtraError,
    StateFileError,
    UnreadableError,
    ViewfoldError,
)
from viewfold.rows.bucket_files import filesystem, is_remote

pa = needed("pyarrow", "parquet", "A .vfd folder")

DRAFT = ".draft"
"""How the names of files end that are not complete yet."""


@dataclass(frozen=True)
class Folder:
    """A folder.

    Attributes
    ----------
    address : str
        A path of this machine without links in it, or an address.
    """

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
        """What messages call it."""
        return str(self).replace("\\", "/").rpartition("/")[2]

    @property
    def remote(self) -> bool:
        """Whether it is not on this machine."""
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
        if name and os.path.isdir(self.address):
            path = os.path.join(self.address, name)
            os.mkdir(path, 0o700)
            os.chmod(path, stat.S_IMODE(os.stat(self.address).st_mode))
        elif not name:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.address, 0o700)

    def read(self, name: str) -> bytes:
        """Return what is in a file."""
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
        """Write a file that must not be there yet.

        Raises
        ------
        FileExistsError
        """
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
            from pathlib import Path

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
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)

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
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


@contextmanager
def reading(folder: Folder, name: str) -> Iterator[None]:
    """Say which file cannot be read, and why."""
    called = f"{folder.name}/{name}"
    try:
        yield
    except ViewfoldError:
        raise
    except UnreadableError as error:
        raise error.kind(f"Cannot read {called}: {error}.") from None
    except FileNotFoundError:
        raise DamagedFileError(
            f"{called} is not there. If another program has written {folder.name} since it was "
            "read, load it again; if not, the file was lost: use a copy of the folder."
        ) from None
    except (PermissionError, IsADirectoryError):
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the system, which says itself what is wrong; Arrow's have no number
        said = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise DamagedFileError(f"{called} is damaged ({said}). Use a copy of it.") from None
