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
    """Let a command that has an argument `file` take the options that say how to read it."""
    own = inspect.signature(command)

    def run(said: dict[str, Any], *args: Any, **given: Any) -> None:
        call = own.bind(*args, **given)
        call.arguments["file"] = File(call.arguments["file"].path, **said)
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
