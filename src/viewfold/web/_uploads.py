"""Files that were dropped on the page: kept in a folder of this server until they are folded.

A file is called by a number that nobody can guess, and by the ending that tells its format; the
name that it has on the user's machine is a text to show, never a path.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewfold._util.file import File
from viewfold.app.folding import SEVERAL
from viewfold.errors import FULL, InputError, NoSpaceError
from viewfold.web.words import printable

MOST = 20
"""So many files wait at a time; of more, the oldest go."""

LONGEST = 255
"""Letters of a file's name."""


class TooLargeError(InputError):
    """A file that is larger than this server takes."""


@dataclass(frozen=True)
class Upload:
    """A file that was dropped on the page.

    Attributes
    ----------
    key : str
        What it is called here.
    name : str
        What it is called where it came from, without folders.
    path : Path
        Where it is.
    size : int
        Its bytes.
    """

    key: str
    name: str
    path: Path
    size: int

    def file(self, **said: Any) -> File:
        """Return the file, with what is said about reading it."""
        return File(self.path, **said)

    def view(self, asked: str | None, file: File) -> str | None:
        """Return what its view is called; None if it holds several, which have their own names."""
        from viewfold.data.files import name_of, read

        if asked is not None:
            return asked
        if self.path.name.endswith(SEVERAL):
            names = list(read(file))
            if names != [name_of(self.path)]:
                return None
        # Its name is no path: "labs [2024].csv" is no pattern, and "a?b.csv" no address.
        return self.name[: len(self.key) - len(self.path.name)]

    def told(self, text: str) -> str:
        """Return a text that names the file as its owner does."""
        return text.replace(str(self.path), self.name).replace(self.path.name, self.name)


class Uploads:
    """The files that wait.

    Parameters
    ----------
    folder : Path
        Where they are; nobody else may read it.
    limit : int
        The most bytes of one.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self.limit = folder, limit
        self._held: dict[str, Upload] = {}
        self._used: list[str] = []

    def check(self, said: str | None) -> None:
        """Refuse a file that says itself that it is too large."""
        if said is not None and said.isdecimal() and int(said) > self.limit:
            raise self._too_large()

    async def receive(self, name: str, chunks: AsyncIterator[bytes]) -> Upload:
        """Write what comes to a file; nothing is left of it if it does not come to an end."""
        import anyio.to_thread

        key, name = secrets.token_hex(16), plain_name(name)
        path, size = self.folder / f"{key}{_ending(name)}", 0
        try:
            with path.open("xb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self.limit:
                        raise self._too_large()
                    await anyio.to_thread.run_sync(file.write, chunk)
            if not size:
                raise InputError(f"{name} is empty.")
        except BaseException as error:
            path.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.errno in FULL:
                raise NoSpaceError(
                    f"{name} was not taken: the disk is full where dropped files are kept. Make "
                    "room, or set TMPDIR to another folder and start viewfold ui again."
                ) from error
            raise
        upload = self._held[key] = Upload(key, name, path, size)
        for old in [one for one in self._held if one not in self._used][:-MOST]:
            self.drop(old)
        return upload

    @contextmanager
    def using(self, key: str) -> Iterator[Upload]:
        """Give a file that stays as long as this lasts."""
        if key not in self._held:
            raise FileNotFoundError("This file is not here any more. Drop it again.")
        self._used.append(key)
        try:
            yield self._held[key]
        finally:
            self._used.remove(key)

    def drop(self, key: str) -> bool:
        """Remove a file that nobody works with; tell whether there was one."""
        upload = None if key in self._used else self._held.pop(key, None)
        if upload is not None:
            upload.path.unlink(missing_ok=True)
        return upload is not None

    def _too_large(self) -> TooLargeError:
        return TooLargeError(
            f"The file has more than {self.limit:,} bytes. Start with a larger "
            "limit=…, or fold it with viewfold add."
        )


def plain_name(name: str) -> str:
    r"""Return the last part of a file's name, as it can be shown.

    Examples
    --------
    >>> from viewfold.web._uploads import plain_name
    >>> plain_name("../../etc/labs.csv"), plain_name("C:\\data\\labs.csv"), plain_name("..")
    ('labs.csv', 'labs.csv', 'file')
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    shown = printable(last).strip()
    return shown[-LONGEST:] if shown.strip(".") else "file"


def _ending(name: str) -> str:
    """Return the ending of a file that can be read, of those that are known."""
    from viewfold.data.files import formats
    from viewfold.data.readers import suffix_of

    suffix, packed = suffix_of(name)
    if not suffix:
        raise InputError(
            f"{name}: files of this kind are not read. Its name should end with one of "
            f"{', '.join(formats())}."
        )
    return suffix + packed
