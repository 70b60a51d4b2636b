"""The options that say how a file is read, for every command that reads one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from viewfold._file import File

Command = TypeVar("Command", bound=Callable[..., None])


def _option(kind: Any, name: str, says: str, metavar: str) -> Any:
    return Annotated[kind, typer.Option(f"--{name}", help=says, metavar=metavar)]


OPTIONS = {
    "sheet": _option(
        list[str] | None, "sheet", "A sheet to read of an Excel file; may be repeated.", "NAME"
    ),
    "encoding": _option(
        str | None, "encoding", "How text is encoded, for instance cp1252.", "NAME"
    ),
    "decimal": _option(str | None, "decimal", "The decimal sign in text.", ".|,"),
    "thousands": _option(
        str | None, "thousands", "What separates thousands in text: , . ' or a space.", "SIGN"
    ),
    "layer": _option(str | None, "layer", "A layer of an AnnData to take instead of X.", "NAME"),
    "use_rep": _option(
        str | None, "rep", "An entry of obsm to take instead of X, such as X_pca.", "NAME"
    ),
}


def file_argument(says: str) -> Any:
    """Return the argument that names the file to read."""
    says += " - is standard input; s3://…, https://… and others are fetched."
    return typer.Argument(metavar="FILE", help=says, parser=File)


def reads(command: Command) -> Command:
    """Let a command that has an argument `file` or `files` take the options that say how to read.

    Of several files, an option goes to those about whose format it says something.
    """
    own = inspect.signature(command)

    def run(said: dict[str, Any], *args: Any, **given: Any) -> None:
        call = own.bind(*args, **given)
        if "file" in call.arguments:
            call.arguments["file"] = File(call.arguments["file"].path, **said)
        else:
            call.arguments["files"] = _each_with(call.arguments["files"], said)
        command(*call.args, **call.kwargs)

    return with_options(command, OPTIONS, run)


def with_options(command: Command, options: Mapping[str, Any], run: Callable[..., None]) -> Command:
    """Return a command that has more options; ``run(said, …)`` gets what is said with them."""

    @wraps(command)
    def extended(*args: Any, **given: Any) -> None:
        said = {name: given.pop(name, None) or None for name in options}
        run(said, *args, **given)

    own = inspect.signature(command)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in options.items()
    ]
    hints = get_type_hints(command, include_extras=True)
    every = [one.replace(annotation=hints[one.name]) for one in own.parameters.values()] + more
    extended.__signature__ = own.replace(parameters=every)  # type: ignore[attr-defined]
    extended.__annotations__ = {**hints, **options}
    return extended  # type: ignore[return-value]


def _each_with(files: list[File], said: dict[str, Any]) -> list[File]:
    """Return files with the options that say something about them; with all, if none of them do."""
    given = {name: value for name, value in said.items() if value is not None}
    if not given:
        return files
    from viewfold.io import options_of

    fit = [tuple(given) if (known := options_of(file)) is None else known for file in files]
    fits_none = {name for name in given if not any(name in names for names in fit)}
    return [
        File(file.path, **{n: v for n, v in given.items() if n in names or n in fits_none})
        for file, names in zip(files, fit, strict=True)
    ]
