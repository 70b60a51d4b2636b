"""The options that say how a file is read, for every command that reads one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

from viewfold._util.file import File
from viewfold.cli.command import Decorator, argument, section
from viewfold.cli.options import FILE, READING

OPTIONS = {
    "sheet": click.option(
        "--sheet",
        metavar="NAME",
        multiple=True,
        help="Sheet of an Excel file to read; may be repeated.",
    ),
    "encoding": click.option(
        "--encoding", metavar="NAME", help="Encoding of a text file, for instance cp1252."
    ),
    "decimal": click.option("--decimal", metavar=".|,", help="Decimal sign in a text file."),
    "thousands": click.option(
        "--thousands", metavar="SIGN", help="Thousands separator in a text file: , . ' or a space."
    ),
    "layer": click.option(
        "--layer", metavar="NAME", help="Layer of an AnnData file to use instead of X."
    ),
    "use_rep": click.option(
        "--rep",
        "use_rep",
        metavar="NAME",
        help="Entry of obsm in an AnnData file to use instead of X, such as X_pca.",
    ),
}


def file_argument(says: str) -> Decorator:
    """Return the argument that names the file to read."""
    return argument("file", metavar="FILE", type=FILE, help=_also_elsewhere(says))


def files_argument(says: str) -> Decorator:
    """Return the argument that names files to read."""
    return argument(
        "files", nargs=-1, required=True, metavar="FILE", type=FILE, help=_also_elsewhere(says)
    )


def _also_elsewhere(says: str) -> str:
    return f"{says} It may be - for standard input, or an address such as s3://… or https://…"


def reads(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that has an argument `file` or `files` take the options that say how to read.

    Of several files, an option goes to those about whose format it says something.
    """

    @wraps(command)
    def run(**given: Any) -> None:
        said = {name: given.pop(name) or None for name in OPTIONS}
        if "file" in given:
            given["file"] = File(given["file"].path, **said)
        else:
            given["files"] = _each_with(given["files"], said)
        command(**given)

    return section(READING, *OPTIONS.values())(run)


def _each_with(files: Sequence[File], said: dict[str, Any]) -> Sequence[File]:
    """Return files with the options that say something about them; with all, if none of them do."""
    given = {name: value for name, value in said.items() if value is not None}
    if not given:
        return files
    from viewfold.data.files import options_of

    fit = [tuple(given) if (known := options_of(file)) is None else known for file in files]
    fits_none = {name for name in given if not any(name in names for names in fit)}
    return [
        File(file.path, **{n: v for n, v in given.items() if n in names or n in fits_none})
        for file, names in zip(files, fit, strict=True)
    ]
