"""Run the server of a page until somebody ends it; nothing of it is left then."""

from __future__ import annotations

import importlib
import secrets
import signal
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewfold._util.replace import workshop
from viewfold.errors import BusyError

if TYPE_CHECKING:
    from viewfold.web.desk import Desk, Settings

HOST = "127.0.0.1"

PATIENCE = 20.0
"""Seconds that work which is being done has to end, before it is left alone."""


def serve(
    state: Path,
    settings: Settings,
    *,
    port: int = 0,
    ready: Callable[[str], None] = lambda address: None,
    browser: bool = True,
) -> None:
    """Serve the page of a state on this machine until Ctrl-C.

    Parameters
    ----------
    state : Path
        A ``.vf`` file or ``.vfd`` folder, which need not be there yet.
    settings : Settings
        Limits.
    port : int, default=0
        Where to listen; 0 for any port that is free.
    ready : callable, optional
        Gets the address, with its token, as soon as somebody listens there.
    browser : bool, default=True
        Whether to open it.
    """
    _check_installed()
    from viewfold.web._connections import Limits, server_of
    from viewfold.web._guard import Guard
    from viewfold.web._routes import app_of
    from viewfold.web.desk import Desk

    token = secrets.token_urlsafe(32)
    with closing(_listening(port)) as listener, _folder() as folder:
        port = listener.getsockname()[1]
        desk = Desk(state, folder, settings)
        guard = Guard(app_of(desk), port, token)
        server = server_of(guard, Limits())
        address = f"http://{HOST}:{port}/#{token}"

        def began() -> None:
            ready(address)
            if browser:
                webbrowser.open(address)
            importlib.import_module("viewfold.web")  # while the browser starts

        with _ending(server, desk):
            threading.Thread(target=_when_started, args=(server, began), daemon=True).start()
            server.run(sockets=[listener])


def _check_installed() -> None:
    """Say what to install if uvicorn or Starlette is not there."""
    try:
        importlib.import_module("starlette")
        importlib.import_module("uvicorn")
    except ImportError as error:
        raise ImportError(
            f"viewfold ui needs {error.name}. Install it with: pip install 'viewfold[ui]'"
        ) from error


def _listening(port: int) -> socket.socket:
    """Return a socket that only this machine can reach."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        raise BusyError(
            f"Port {port} cannot be used: {error.strerror}. Choose another port=…, or leave it out."
        ) from None
    return listener


@contextmanager
def _folder() -> Iterator[Path]:
    """Make a folder for files that are dropped; what a killed server left is cleared first."""
    with workshop(Path(tempfile.gettempdir(), "viewfold-ui")) as folder:
        yield folder


@contextmanager
def _ending(server: Any, desk: Desk) -> Iterator[None]:
    """End in good order: on Ctrl-C, when the process is ended, or the terminal is closed."""

    def end(*_: Any) -> None:
        server.should_exit = True

    # uvicorn hears Ctrl-C and SIGTERM itself, and raises them again when it has ended: without
    # handlers of ours, the second would end the process before anything is cleared away.
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    mine = threading.current_thread() is threading.main_thread()
    before = {name: signal.signal(getattr(signal, name), end) for name in names if mine}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)
        with suppress(KeyboardInterrupt):  # a second Ctrl-C: do not wait for the work
            desk.close(PATIENCE)


def _when_started(server: Any, began: Callable[[], None]) -> None:
    while not server.started and not server.should_exit:
        threading.Event().wait(0.02)
    if server.started:
        began()
