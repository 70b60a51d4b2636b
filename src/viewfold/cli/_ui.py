"""The command ui: the page of a state, in a browser on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from viewfold._console import complain, say
from viewfold._option import size_in_bytes
from viewfold.cli._engine import works
from viewfold.cli._options import Keep, State, Wait


@works
def ui(
    state: State,
    port: Annotated[
        int, typer.Option("--port", help="Where to listen; any free port if 0.", min=0, max=65535)
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Open no browser; the address is printed.")
    ] = False,
    max_upload: Annotated[
        str,
        typer.Option("--max-upload", help="The largest file that can be dropped.", metavar="SIZE"),
    ] = "2G",
    keep: Keep = None,
    wait: Wait = 60,
) -> None:
    """Show a state in the browser: drop a file on the page, fold it, see what moved, take it back.

    Only this machine can reach the page, and only with the address that is printed. Ctrl-C ends it.
    """
    from viewfold.ui._desk import Settings
    from viewfold.ui._serve import serve

    limit = size_in_bytes(max_upload, f"--max-upload {max_upload}")

    def ready(address: str) -> None:
        complain(f"{state} is shown at {address}")
        say("Whoever has this address can change the state. Ctrl-C ends it.")

    serve(state, Settings(keep, wait, limit), port=port, ready=ready, browser=not no_browser)
