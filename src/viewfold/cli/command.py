"""What all commands have in common: how their help looks, --quiet, --log, and Ctrl-C.

Only click is imported here, so that ``viewfold --help`` answers at once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from viewfold.cli.console import voice
from viewfold.cli.journal import journal

Function = TypeVar("Function", bound=Callable[..., Any])


class Decorator(Protocol):
    """What adds an option or an argument to the function of a command."""

    def __call__(self, command: Function, /) -> Function:
        """Return the function."""


PATH = click.Path(readable=False, path_type=Path)
"""A file or folder; whoever opens it says what is wrong with it."""


class Whole(click.IntRange):
    """A whole number within bounds."""

    name = "whole number"  # click would say that 'ten' is not a valid integer range


VOICE = (
    click.Option(["--quiet", "-q"], is_flag=True, help="Print errors only."),
    click.Option(
        ["--log"],
        metavar="FILE",
        type=PATH,
        help="Append a log of the command to this file, as JSON lines.",
    ),
)
"""How much a command says, and where it is written down; before its name or after it."""


def listen(quiet: bool, log: Path | None) -> None:
    """Do as these options say; what is not said stays as it is."""
    voice.quiet |= quiet
    if log is not None:
        journal.open(log)


def section(title: str, *options: Decorator) -> Decorator:
    """Return a decorator that adds options; the help of the command lists them under a heading."""

    def decorate(command: Function) -> Function:
        before = len(vars(command).get("__click_params__", ()))
        for option in reversed(options):  # click lists first what was added last
            command = option(command)
        titles = vars(command).setdefault("sections", {})
        titles |= {one.name: title for one in vars(command)["__click_params__"][before:]}
        return command

    return decorate


class Argument(click.Argument):
    """An argument that says what it is, which click knows of since 8.5 only.

    Parameters
    ----------
    help : str
        What it is.
    """

    help: str

    def __init__(self, *args: Any, help: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.help = help

    def told(self) -> tuple[str, str]:
        """Return its name and what it is, for a list."""
        default = self.to_info_dict()["default"]
        more = "" if default is None else f"  [default: {default}]"
        return self.human_readable_name, self.help + ("  [required]" if self.required else more)

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return its name, and whether it may be left out or repeated."""
        name = self.human_readable_name if self.required else f"[{self.human_readable_name}]"
        return [name if self.nargs == 1 else f"{name}..."]


def argument(name: str, *, help: str, **more: Any) -> Decorator:
    """Return a decorator that adds an argument."""
    return click.argument(name, cls=Argument, help=help, **more)


class Command(click.Command):
    """A command that takes --quiet and --log, and whose help tells of its arguments.

    Parameters
    ----------
    group : str
        The heading under which the program's help lists it.
    """

    group: str

    def __init__(self, *args: Any, group: str = "Commands", **more: Any) -> None:
        super().__init__(*args, **more)
        self.group = group
        self.params += VOICE

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the arguments and options are, under the headings that `section` gave."""
        if told := [one.told() for one in self.params if isinstance(one, Argument)]:
            with formatter.section("Arguments"):
                formatter.write_dl(told)
        for title, options in self.sections(ctx).items():
            records = [one.get_help_record(ctx) for one in options]
            with formatter.section(title):
                formatter.write_dl([record for record in records if record is not None])

    def sections(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Return the options by heading, those without one first."""
        titles = getattr(self.callback, "sections", {})
        found: dict[str, list[click.Option]] = {"Options": []}
        for one in self.get_params(ctx):
            if isinstance(one, click.Option) and not one.hidden:
                found.setdefault(titles.get(one.name, "Options"), []).append(one)
        return found

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: `format_options` does it for every version of click."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        listen(ctx.params.pop("quiet"), ctx.params.pop("log"))
        journal.begin(ctx.command_path.removeprefix(ctx.find_root().command_path).strip())
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # click would write an empty line
            raise click.Abort from None


class Group(click.Group):
    """Commands whose first sentences are told in full, over several lines if they need them."""

    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, each group under its heading."""
        groups: dict[str, list[str]] = {}
        for name in self.list_commands(ctx):
            groups.setdefault(self.group_of(name), []).append(name)
        width = max(map(len, self.list_commands(ctx)), default=0)
        for title, names in groups.items():
            with formatter.section(title):  # all descriptions begin in one column
                formatter.write_dl(
                    [(f"{name:<{width}}", self._short_help(ctx, name)) for name in names]
                )

    def group_of(self, name: str) -> str:
        """Return the heading under which a command is listed."""
        return getattr(self.commands[name], "group", "Commands")

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order in which they were added."""
        return list(self.commands)

    def _short_help(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return "" if command is None else command.get_short_help_str(1000)
