"""The server of `viewfold ui`, seen from a socket: clients that send nonsense, or are many."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from ui_pages import TOKEN

from viewfold.web.routes import app_of
from viewfold.web.server import HOST, Guard, _listening, server_of
from viewfold.web.session import Session, Settings


class Served:
    """A server in a thread of this process."""

    def __init__(self, app_at: Callable[[int], Any]) -> None:
        self.listener = _listening(0)
        self.port = self.listener.getsockname()[1]
        self.server = server_of(app_at(self.port))
        self.thread = threading.Thread(target=self.server.run, args=([self.listener],), daemon=True)

    def client(self) -> socket.socket:
        return socket.create_connection((HOST, self.port), timeout=20)

    def head(self, start: str, *more: str, token: str = TOKEN) -> bytes:
        host = f"Host: {HOST}:{self.port}"
        lines = [f"{start} HTTP/1.1", host, f"Authorization: Bearer {token}", *more]
        return "\r\n".join([*lines, "", ""]).encode()

    def upload(self, size: int, **more: str) -> bytes:
        return self.head("PUT /api/uploads?name=a.csv", f"Content-Length: {size}", **more)

    def status(self, client: socket.socket) -> int:
        client.sendall(self.head("GET /api/status"))
        return status_of(client)

    def empty(self) -> None:
        """Wait until no connection is open, and nobody works for one."""
        until, state = time.monotonic() + 20, self.server.server_state
        while state.connections or state.tasks:
            assert time.monotonic() < until
            time.sleep(0.01)


@contextmanager
def served(app_at: Callable[[int], Any]) -> Iterator[Served]:
    found = Served(app_at)
    found.thread.start()
    try:
        while not found.server.started:
            time.sleep(0.01)
        yield found
    finally:
        found.server.should_exit = True
        found.thread.join(20)
        found.listener.close()
        assert not found.thread.is_alive()


@pytest.fixture
def page(tmp_path: Path) -> Callable[[], Any]:
    def serve() -> Any:
        def app_at(port: int) -> Guard:
            (tmp_path / "uploads").mkdir()
            session = Session(tmp_path / "s.vf", tmp_path / "uploads", Settings())
            return Guard(app_of(session), port, TOKEN)  # type: ignore[arg-type]

        return served(app_at)

    return serve


def status_of(client: socket.socket) -> int:
    """Read an answer to its end."""
    answer = HTTPResponse(client)
    answer.begin()
    answer.read()
    return answer.status


def rest(client: socket.socket) -> bytes:
    """Return what comes until the server closes the connection, which it has to do."""
    found = b""
    try:
        while chunk := client.recv(2**16):
            found += chunk
    except ConnectionResetError:  # it closed with bytes of ours that it did not read
        pass
    return found


# ---- what is no request -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nX: " + b"a" * 10**6,
        b"GET /" + b"a" * 10**6 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # a browser that tries https
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    ],
    ids=["header", "address", "hosts", "https", "length"],
)
def test_what_is_no_request_is_refused_without_a_word_elsewhere(
    page: Any, sent: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with page() as server, closing(server.client()) as client:
        with suppress(ConnectionResetError, BrokenPipeError):
            client.sendall(sent)
        assert rest(client)[:12] in (b"HTTP/1.1 400", b"")  # it may close while we still send
        server.empty()
        with closing(server.client()) as other:
            assert server.status(other) == 200
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("token", ["wrong", TOKEN], ids=["refused", "let in"])
def test_a_body_that_breaks_off_in_nonsense_is_no_defect(
    page: Any, tmp_path: Path, token: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with page() as server, closing(server.client()) as client:
        start = "PUT /api/uploads?name=a.csv"
        client.sendall(server.head(start, "Transfer-Encoding: chunked", token=token))
        if token == "wrong":
            assert status_of(client) == 403
        client.sendall(b"2\r\nab\r\nnonsense\r\n")
        rest(client)
        server.empty()
        assert list((tmp_path / "uploads").iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_of_too_many_connections_another_one_is_told_to_come_back(page: Any, monkeypatch) -> None:
    monkeypatch.setattr("viewfold.web.server.MOST_REQUESTS", 3)
    with page() as server:
        clients = [server.client() for _ in range(2)]
        try:
            assert [server.status(one) for one in clients] == [200] * 2
            clients.append(server.client())
            assert server.status(clients[2]) == 503
            clients[0].close()
            assert server.status(clients[1]) == 200
        finally:
            for one in clients:
                one.close()
