"""Commands of other packages, such as ``viewfold bench`` of viewfold-research.

A package announces a click command as an entry point in the group ``viewfold.commands``. It is
imported when the command runs or when its help is shown, so that other commands start at once.
"""

from __future__ import annotations

from typing import Any

import click

from viewfold.cli.command import Group
from viewfold.errors import MissingExtraError
from viewfold.state.registry import entry_points

GROUP = "viewfold.commands"
ELSEWHERE = {"bench": "viewfold-research"}
"""Commands that are not part of viewfold, and the packages that have them."""
RENAMED = {
    "init": "viewfold add STATE FILE --clusters K",
    "extend": "viewfold add STATE FILE --only-new",
    "restore": "viewfold undo STATE --to ENTRY",
}
"""Commands that were there once, and what does the same now."""


class PluginGroup(Group):
    """viewfold's own commands, then those of installed packages."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands; a package cannot replace one of viewfold's own."""
        added = {point.name for point in entry_points(group=GROUP)}
        return [*self.commands, *sorted(added - self.commands.keys())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported from its package if it is not viewfold's own."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        for point in entry_points(group=GROUP, name=cmd_name):
            return _load(point)
        if cmd_name in ELSEWHERE:
            package = ELSEWHERE[cmd_name]
            raise MissingExtraError(
                f"'viewfold {cmd_name}' needs the package {package}. "
                f"Install it with: pip install {package}"
            )
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was typed; one with a new name is pointed to."""
        name = args[0]
        if name in RENAMED and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            raise click.UsageError(f"viewfold {name} is now: {RENAMED[name]}.")
        return super().resolve_command(ctx, args)

    def group_of(self, name: str) -> str:
        """Return the heading of a command; those of other packages have one for themselves."""
        return super().group_of(name) if name in self.commands else "Research"

    def _short_help(self, ctx: click.Context, name: str) -> str:
        try:
            return super()._short_help(ctx, name)
        except MissingExtraError as error:  # one broken package does not hide the other commands
            return str(error)


def _load(point: Any) -> click.Command:
    called = f"The command {point.name!r} of {point.value.partition(':')[0]}"
    try:
        command = point.load()
    except Exception as error:
        raise MissingExtraError(
            f"{called} cannot be loaded: {type(error).__name__}: {error}. "
            "Install its package again, or uninstall it."
        ) from error
    if not isinstance(command, click.Command):
        raise MissingExtraError(f"{called} is not a click command. Uninstall its package.")
    return command
