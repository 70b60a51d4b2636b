"""Who may ask: this machine's browser, the page itself, and only with the token.

A request passes if it is for this server's own address (other names that lead here are refused:
DNS rebinding), comes from no other site, and, for all but the empty page, has the token.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

API = "/api/"

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
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""What goes with every answer."""


class Guard:
    """Refuse requests that do not come from the page, before anything else sees them.

    Parameters
    ----------
    app : ASGI application
        Who answers the others.
    port : int
        Where the server listens.
    token : str
        What requests to the interface have to bring along.
    """

    def __init__(self, app: App, port: int, token: str) -> None:
        self.app = app
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        if port == 80:
            self.hosts |= {"127.0.0.1", "localhost"}
        self.token = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
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
        else:
            await _refuse(send_with_headers, why)

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
        if path.startswith(API) and not (
            len(tokens) == 1 and secrets.compare_digest(tokens[0], self.token)
        ):
            return "The token is missing or wrong. Open the address that viewfold ui printed."
        return None


def _text(value: bytes) -> str:
    return value.decode("latin-1").strip()


async def _refuse(send: Send, why: str) -> None:
    body = json.dumps({"error": {"code": "refused", "message": why}}).encode()
    size = str(len(body)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", size)]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})
