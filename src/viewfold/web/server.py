"""Run the server of a page until somebody ends it; nothing of it is left then.

Who may ask: this machine's browser, the page itself, and only with the token. A request passes if
it is for this server's own address (other names that lead here are refused: DNS rebinding), comes
from no other site, and, for all but the empty page, has the token.
"""

from __future__ import annotations

import importlib
import secrets
import signal
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewfold._util.messages import needed
from viewfold._util.replace import workshop
from viewfold.errors import BusyError

if TYPE_CHECKING:
    import uvicorn

    from viewfold.web.session import Session, Settings


HOST = "127.0.0.1"

PATIENCE = 20.0  # seconds in which running work has to end, before it is left alone
MOST_REQUESTS = 100  # connections at a time; the next one gets 503


def serve(
    state: Path,
    settings: Settings,
    *,
    port: int = 0,
    ready: Callable[[str], None] = lambda address: None,
    browser: bool = True,
) -> None:
    """Serve the page of a state, which need not be there yet, on this machine until Ctrl-C.

    Port 0 is any port that is free. `ready` gets the address, with its token, as soon as somebody
    listens there.
    """
    for module in ("starlette", "uvicorn"):
        needed(module, "ui", "viewfold ui")
    from viewfold.web.routes import app_of
    from viewfold.web.session import Session

    token = secrets.token_urlsafe(32)
    # Files that are dropped go into a folder; what a killed server left is cleared first.
    room = workshop(Path(tempfile.gettempdir(), "viewfold-ui"))
    with closing(_listening(port)) as listener, room as folder:
        port = listener.getsockname()[1]
        session = Session(state, folder, settings)
        guard = Guard(app_of(session), port, token)
        server = server_of(guard)
        address = f"http://{HOST}:{port}/#{token}"

        def tell() -> None:
            while not server.started and not server.should_exit:
                threading.Event().wait(0.02)
            if not server.started:
                return
            ready(address)
            if browser:
                webbrowser.open(address)
            importlib.import_module("viewfold.web")  # while the browser starts

        with _ending(server, session):
            threading.Thread(target=tell, daemon=True).start()
            server.run(sockets=[listener])


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
def _ending(server: Any, session: Session) -> Iterator[None]:
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
            session.worker.stop(PATIENCE)


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self' 'unsafe-eval'",  # the map compiles its draw calls
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "worker-src 'self' blob:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
# What goes with every answer.
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Refuse requests that do not come from the page, before anything else sees them."""

    def __init__(self, app: App, port: int, token: str) -> None:
        self.app = app
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        if port == 80:
            self.hosts |= {"127.0.0.1", "localhost"}
        self.token = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no websockets
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                mine = [(name.lower().encode(), v.encode()) for name, v in HEADERS.items()]
                own = {name for name, _ in mine}
                rest = [one for one in message.get("headers", []) if one[0].lower() not in own]
                message = {**message, "headers": [*rest, *mine]}
            await send(message)

        why = self.refusal(scope)
        if why is None:
            await self.app(scope, receive, send_with_headers)
            return
        from starlette.responses import JSONResponse

        facts = {"error": {"code": "refused", "message": why}}
        await JSONResponse(facts, status_code=403)(scope, receive, send_with_headers)

    def refusal(self, scope: Scope) -> str | None:
        """Return why a request is refused; None if it is not."""
        given: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name.lower(), []).append(value)
        if len(hosts := given.get(b"host", [])) != 1 or _text(hosts[0]).lower() not in self.hosts:
            return "This server answers to its own address only."
        host, path = _text(hosts[0]).lower(), scope["path"]
        if any(_text(one).lower() != f"http://{host}" for one in given.get(b"origin", [])):
            return "This request comes from another page."
        for site in given.get(b"sec-fetch-site", []):
            # A link from another server on this machine may open the page, which is empty.
            if site not in (b"same-origin", b"none") and (site, path) != (b"same-site", "/"):
                return "This request comes from another site. Type the address that was printed."
        tokens = given.get(b"authorization", [])
        if path.startswith("/api/") and not (
            len(tokens) == 1 and secrets.compare_digest(tokens[0], self.token)
        ):
            return "The token is missing or wrong. Open the address that viewfold ui printed."
        return None


def _text(value: bytes) -> str:
    return value.decode("latin-1").strip()


def server_of(app: Any) -> uvicorn.Server:
    """Return the server of an ASGI application, which says nothing by itself."""
    import uvicorn

    config = uvicorn.Config(
        app,
        http="h11",
        lifespan="off",
        log_config=None,
        log_level="critical",  # errors are answers
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        limit_concurrency=MOST_REQUESTS,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)
