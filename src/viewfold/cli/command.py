"""What all commands have in common: help, ``--quiet``, ``--log``, Ctrl-C; and commands of plug-ins.

Only click is imported here, so that ``viewfold --help`` answers at once. Another package announces
a click command as an entry point in the group ``viewfold.commands``, imported when used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from viewfold.cli.console import journal, voice
from viewfold.errors import MissingExtraError
from viewfold.state.registry import entry_points

PATH = click.Path(readable=False, path_type=Path)  # whoever opens it says what is wrong with it

# Before the name of a command or after it.
SHARED = (
    click.Option(["--quiet", "-q"], is_flag=True, help="Print errors only."),
    click.Option(
        ["--log"],
        metavar="FILE",
        type=PATH,
        help="Append a log of the command to this file, as JSON lines.",
    ),
)


def apply_shared(quiet: bool, log: Path | None) -> None:
    """Apply --quiet and --log; without them, everything stays as it is."""
    voice.quiet |= quiet
    if log is not None:
        journal.open(log)


class Argument(click.Argument):
    """An argument with a help text, which click has since 8.5 only."""

    help: str

    def __init__(self, *args: Any, help: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.help = help

    def help_record(self) -> tuple[str, str]:
        default = self.to_info_dict()["default"]
        more = "" if default is None else f"  [default: {default}]"
        return self.human_readable_name, self.help + ("  [required]" if self.required else more)

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        name = self.human_readable_name if self.required else f"[{self.human_readable_name}]"
        return [name if self.nargs == 1 else f"{name}..."]


class Command(click.Command):
    """A command that takes --quiet and --log, and whose help describes its arguments.

    The help of the program lists it under the heading `group`. `headings` has the names of options
    that its own help lists under a heading; all others are "Options".
    """

    def __init__(
        self,
        *args: Any,
        group: str = "Commands",
        headings: Mapping[str, Sequence[str]] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.group, self.headings = group, headings or {}
        self.params += SHARED

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, then the options under their headings."""
        if records := [one.help_record() for one in self.params if isinstance(one, Argument)]:
            with formatter.section("Arguments"):
                formatter.write_dl(records)
        for heading, options in self.sections(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(
                    [record for one in options if (record := one.get_help_record(ctx))]
                )

    def sections(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Return the options by heading."""
        heading_of = {name: title for title, names in self.headings.items() for name in names}
        found: dict[str, list[click.Option]] = {"Options": [], **{one: [] for one in self.headings}}
        for one in self.get_params(ctx):
            if isinstance(one, click.Option):
                found[heading_of.get(one.name or "", "Options")].append(one)
        return {heading: options for heading, options in found.items() if options}

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: `format_options` does it for every version of click."""

    def invoke(self, ctx: click.Context) -> Any:
        apply_shared(ctx.params.pop("quiet"), ctx.params.pop("log"))
        journal.begin(ctx.command_path.removeprefix(ctx.find_root().command_path).strip())
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # click would write an empty line
            raise click.Abort from None


class Group(click.Group):
    """Commands whose help shows the first sentence of each in full, over several lines if needed.

    Its commands take ``--quiet`` and ``--log`` like all others.
    """

    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
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
        return getattr(self.commands[name], "group", "Commands")

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def _short_help(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return "" if command is None else command.get_short_help_str(1000)


# -- commands of other packages

PLUGINS = "viewfold.commands"
ELSEWHERE = {"bench": "viewfold-research"}  # commands of packages that may not be installed


class PluginGroup(Group):
    """viewfold's own commands, then those of installed packages, which cannot replace them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        added = {point.name for point in entry_points(group=PLUGINS)}
        return [*self.commands, *sorted(added - self.commands.keys())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        for point in entry_points(group=PLUGINS, name=cmd_name):
            return _load(point)
        if cmd_name in ELSEWHERE:
            package = ELSEWHERE[cmd_name]
            raise MissingExtraError(
                f"'viewfold {cmd_name}' needs the package {package}. "
                f"Install it with: pip install {package}"
            )
        return None

    def group_of(self, name: str) -> str:
        return super().group_of(name) if name in self.commands else "Research"

    def _short_help(self, ctx: click.Context, name: str) -> str:
        try:
            return super()._short_help(ctx, name)
        except MissingExtraError as error:  # one broken package does not hide the other commands
            return str(error)


def _load(point: Any) -> click.Command:
    named = f"The command {point.name!r} of {point.value.partition(':')[0]}"
    try:
        command = point.load()
    except Exception as error:
        raise MissingExtraError(
            f"{named} cannot be loaded: {type(error).__name__}: {error}. "
            "Install its package again, or uninstall it."
        ) from error
    if not isinstance(command, click.Command):
        raise MissingExtraError(f"{named} is not a click command. Uninstall its package.")
    return command
