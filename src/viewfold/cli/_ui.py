"""The command ui: the page of a state, in a browser on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from viewfold._util.arguments import size_in_bytes
from viewfold.cli import _options as opt
from viewfold.cli._engine import works
from viewfold.cli.command import Whole
from viewfold.cli.console import complain, say


@opt.state
@click.option(
    "--port",
    metavar="N",
    type=Whole(0, 65535),
    default=0,
    help="Port to listen on; 0 takes any free one.",
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser; only print the address.")
@click.option(
    "--max-upload",
    metavar="SIZE",
    default="2G",
    help="Size of the largest file that you can drop on the page.",
)
@opt.keep
@opt.wait
@works
def ui(
    state: Path, port: int, no_browser: bool, max_upload: str, keep: int | None, wait: float
) -> None:
    """Open a state in the browser: drop files to fold them, see who moved, undo.

    Only this machine can reach the page, and only with the address that is printed. Ctrl-C ends it.
    """
    from viewfold.web.desk import Settings
    from viewfold.web.server import serve

    limit = size_in_bytes(max_upload, f"--max-upload {max_upload}")

    def ready(address: str) -> None:
        complain(f"{state} is shown at {address}")
        say("Whoever has this address can change the state. Ctrl-C ends it.")

    serve(state, Settings(keep, wait, limit), port=port, ready=ready, browser=not no_browser)
