"""A web server on this machine for tests of downloads: what it has, and how it misbehaves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Web:
    """Files by path. A number is a status, a text an address to go to, `short` breaks off."""

    def __init__(self) -> None:
        self.files: dict[str, bytes | int | str] = {}
        self.short: set[str] = set()
        self.unsized: set[str] = set()
        self.asked: list[str] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def _handler(web) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked.append(self.path)
                held = web.files.get(self.path, 404)
                if isinstance(held, int):
                    self.send_error(held)
                elif isinstance(held, str):
                    self.send_response(302)
                    self.send_header("Location", held)
                    self.end_headers()
                else:
                    self.send_response(200)
                    if self.path not in web.unsized:
                        self.send_header("Content-Length", str(len(held)))
                    self.end_headers()
                    self.wfile.write(held[: len(held) // 2] if self.path in web.short else held)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """Serve files; a proxy of this machine is no part of a test."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "*")
    for name in ("VIEWFOLD_DATA", "VIEWFOLD_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    held = Web()
    thread = threading.Thread(target=held.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield held
    held.server.shutdown()
    held.server.server_close()
    thread.join()
