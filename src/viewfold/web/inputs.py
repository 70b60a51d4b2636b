"""What requests bring: values, checked by name and kind, and files that are dropped on the page.

A file gets a number that nobody can guess, and the ending that tells its format; the name that it
has on the user's machine is a text to show, never a path.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewfold._util.file import File, ReadOptions
from viewfold.app.folding import FoldOptions
from viewfold.app.summaries import AUTO
from viewfold.errors import FULL, InputError, NoSpaceError
from viewfold.web.words import printable

Check = Callable[[Any], Any]

_NUMBER = re.compile("[0-9]{1,18}")


class _WrongError(Exception):
    """A value that is not of its kind; the text says what was expected."""


def _check(expected: str, is_right: Callable[[Any], Any]) -> Check:
    def check(value: Any) -> Any:
        if not is_right(value):
            raise _WrongError(expected)
        return value

    return check


def one_of(*words: str) -> Check:
    return _check(f"one of {', '.join(words)}", lambda value: value in words)


def _is_list(value: Any, kind: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, kind) for one in value)


text = _check("a text", lambda value: isinstance(value, str) and value)
any_text = _check("a text", lambda value: isinstance(value, str))
flag = _check("true or false", lambda value: isinstance(value, bool))
texts = _check("a list of texts", lambda value: _is_list(value, str))
ids = _check(
    "a list of sample ids, at least one",
    lambda value: value and _is_list(value, str | int) and not any(one is True for one in value),
)


def whole(least: int, most: int | None = None) -> Check:
    def check(value: Any) -> int:
        if isinstance(value, str) and _NUMBER.fullmatch(value):  # of an address
            value = int(value)
        right = isinstance(value, int) and not isinstance(value, bool)
        if not right or value < least or (most is not None and value > most):
            upto = "" if most is None else f" to {most}"
            raise _WrongError(f"a whole number from {least}{upto}")
        return int(value)

    return check


def share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise _WrongError("a number of samples such as 100, or a part of them such as 0.5")
    if value > 1 and value != int(value):
        raise _WrongError("a whole number of samples")
    return float(value) if value <= 1 and isinstance(value, float) else int(value)


def clusters(value: Any) -> int:
    return AUTO if value == "auto" else int(whole(1)(value))


# About a file; see `viewfold.data.File`.
FILE: dict[str, Check] = {
    "sheet": texts,
    **dict.fromkeys(("encoding", "decimal", "thousands", "layer", "use_rep"), text),
    "day_first": flag,
}
# About its rows and columns; see `viewfold.as_view`.
READING: dict[str, Check] = {
    "empty_rows": one_of("absent", "keep"),
    "missing_cells": one_of("accept", "error"),
    **dict.fromkeys(("columns", "drop", "categories", "empty_markers"), texts),
    "batch": text,
    **dict.fromkeys(("strict", "as_is"), flag),
}
# To look at a file.
VIEW: dict[str, Check] = {
    "upload": text,
    "view": text,
    "id_column": text,
    "no_id": flag,
    "similar_ids": one_of("refuse", "match", "new"),
    **FILE,
    **READING,
}
# To fold it.
FOLD: dict[str, Check] = {
    **VIEW,
    "min_shared": share,
    "clusters": clusters,
    "unconnected": one_of("pair", "separate"),
    "method": text,
    "seed": whole(0, 2**32 - 1),
    "private": flag,
    "keep": whole(0, 100),
    "dry_run": flag,
}


def checked(said: Any, known: Mapping[str, Check], needed: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the values of a request; null is the same as none."""
    if not isinstance(said, dict):
        raise InputError("The request should hold a JSON object.")
    said = {name: value for name, value in said.items() if value is not None}
    for name in said:
        if name not in known:
            raise InputError(f"There is no {name!r} here. Known are: {', '.join(known)}.")
    for name in needed:
        if name not in said:
            raise InputError(f"{name!r} is missing.")
    try:
        return {(at := name): known[name](value) for name, value in said.items()}
    except _WrongError as wrong:
        raise InputError(f"{at!r} should be {wrong}, and is {said[at]!r:.60}.") from None


def ids_option(said: Mapping[str, Any]) -> str | bool | None:
    """Return what is said about ids: their column, that there are none (False), or nothing."""
    column: str | None = said.get("id_column")
    if said.get("no_id") and column is not None:
        raise InputError("'id_column' names a column of ids, 'no_id' says that there is none.")
    return False if said.get("no_id") else column


def pick(said: Mapping[str, Any], names: Mapping[str, Check]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name in names}


def fold_options(said: Mapping[str, Any], wait: float) -> FoldOptions:
    rest = {name: said[name] for name in FOLD if name in said and name not in (*FILE, *READING)}
    for name in ("upload", "id_column", "no_id"):
        rest.pop(name, None)
    options = ReadOptions.of(**pick(said, READING))
    return FoldOptions(ids=ids_option(said), options=options, wait=wait, **rest)


# -- files

MOST = 20  # so many files wait at a time; of more, the oldest go
LONGEST = 255  # letters of a file's name


class TooLargeError(InputError):
    """A file that is larger than this server takes."""


@dataclass(frozen=True)
class Upload:
    """A file that was dropped on the page."""

    key: str  # what it is called here
    name: str  # what it is called where it came from, without folders
    path: Path  # where it is
    size: int  # its bytes

    def file(self, **options: Any) -> File:
        """Return the file; its view and messages are named after it as its owner names it."""
        from viewfold.data.fetch import Named

        return File(Named(str(self.path), self.name), **options)

    def rename_file(self, text: str) -> str:
        """Name the file in a text as its owner does."""
        return text.replace(str(self.path), self.name).replace(self.path.name, self.name)


class Uploads:
    """The files that wait."""

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

        from viewfold.data.files import formats, suffix_of

        key, name = secrets.token_hex(16), plain_name(name)
        suffix, packed = suffix_of(name)
        if not suffix:
            raise InputError(
                f"{name}: files of this kind are not read. Its name should end with one of "
                f"{', '.join(formats())}."
            )
        path, size = self.folder / f"{key}{suffix}{packed}", 0
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
    """Return the last part of a file's name, as it can be shown."""
    last = name.replace("\\", "/").rpartition("/")[2]
    shown = printable(last).strip()
    return shown[-LONGEST:] if shown.strip(".") else "file"
