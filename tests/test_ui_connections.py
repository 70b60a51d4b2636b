"""The server of `viewfold ui` and clients that stop halfway, seen from a socket."""

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

from viewfold.web.desk import Desk, Settings
from viewfold.web.routes import app_of
from viewfold.web.server import HOST, Guard, Limits, _listening, server_of

SOON = Limits(head=0.3, stall=0.3)


class Served:
    """A server in a thread of this process."""

    def __init__(self, app_at: Callable[[int], Any], limits: Limits) -> None:
        self.listener = _listening(0)
        self.port = self.listener.getsockname()[1]
        self.server = server_of(app_at(self.port), limits)
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
def served(app_at: Callable[[int], Any], limits: Limits) -> Iterator[Served]:
    found = Served(app_at, limits)
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
def page(tmp_path: Path) -> Callable[[Limits], Any]:
    def serve(limits: Limits) -> Any:
        def app_at(port: int) -> Guard:
            (tmp_path / "uploads").mkdir()
            desk = Desk(tmp_path / "s.vf", tmp_path / "uploads", Settings())
            return Guard(app_of(desk), port, TOKEN)  # type: ignore[arg-type]

        return served(app_at, limits)

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


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127"])
def test_a_client_that_does_not_end_its_header_is_closed(page: Any, sent: bytes) -> None:
    with page(SOON) as server, closing(server.client()) as client:
        client.sendall(sent)
        assert rest(client) == b""
        server.empty()
        with closing(server.client()) as other:
            assert server.status(other) == 200


def drip(client: socket.socket, every: float) -> bytes:
    """Send a byte now and then until the server has enough; return what it said."""
    client.settimeout(every)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            client.sendall(b"a")
            if not (said := client.recv(2**16)):
                return b""
            client.settimeout(20)
            return said + rest(client)
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            return b""
    raise AssertionError("the server listens to this client for ever")


def test_a_byte_now_and_then_is_no_header(page: Any) -> None:
    with page(SOON) as server, closing(server.client()) as client:
        client.sendall(b"GET / HTTP/1.1\r\nX: ")
        assert drip(client, 0.05) == b""
        server.empty()


def test_the_next_request_has_to_end_its_header_too(page: Any) -> None:
    with page(SOON) as server, closing(server.client()) as client:
        assert server.status(client) == 200
        client.sendall(b"GET / HT")
        assert rest(client) == b""


def test_between_two_requests_there_is_as_much_time_as_before(page: Any) -> None:
    with page(SOON) as server, closing(server.client()) as client:
        assert server.status(client) == 200
        time.sleep(3 * SOON.head)
        assert server.status(client) == 200


@pytest.mark.parametrize("stops", [True, False], ids=["stops", "drips"])
def test_a_body_that_does_not_come_is_given_up_and_leaves_nothing(
    page: Any, tmp_path: Path, stops: bool
) -> None:
    with page(SOON) as server, closing(server.client()) as client:
        client.sendall(server.upload(10_000) + b"patient,a\n")
        assert (rest(client) if stops else drip(client, 0.05)) == b""
        server.empty()
        assert list((tmp_path / "uploads").iterdir()) == []


def test_a_slow_upload_that_goes_on_comes_to_its_end(page: Any, tmp_path: Path) -> None:
    with page(Limits(head=0.3, stall=2, rate=10)) as server, closing(server.client()) as client:
        client.sendall(server.upload(80))
        for _ in range(8):  # three times as long as a client may be silent
            time.sleep(0.75)
            client.sendall(b"p" * 10)
        assert status_of(client) == 201
        (found,) = (tmp_path / "uploads").iterdir()
        assert found.read_bytes() == b"p" * 80


def test_the_body_of_a_request_that_was_refused_is_not_awaited(page: Any) -> None:
    with page(SOON) as server, closing(server.client()) as client:
        client.sendall(server.upload(10_000, token="wrong") + b"patient,a\n")
        assert status_of(client) == 403
        assert drip(client, 0.05) == b""
        server.empty()


def test_half_a_request_behind_another_one_is_closed_as_well(page: Any) -> None:
    with page(SOON) as server, closing(server.client()) as client:
        client.sendall(server.head("GET /api/status") + server.upload(10_000) + b"patient,a\n")
        answer = rest(client)
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.count(b"HTTP/1.1") == 1
        server.empty()


# ---- clients that do not read -------------------------------------------------------------------

BIG = 2**25


def big(port: int) -> Any:
    """An application whose answer does not fit into the buffers of a connection."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        size = (b"content-length", str(BIG).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [size]})
        await send({"type": "http.response.body", "body": b"x" * BIG})

    return app


def test_an_answer_that_nobody_reads_is_given_up() -> None:
    with served(big, SOON) as server, closing(server.client()) as client:
        client.sendall(server.head("GET /"))
        assert client.recv(8) == b"HTTP/1.1"
        server.empty()


def test_an_answer_that_is_read_slowly_is_read_to_its_end() -> None:
    with served(big, Limits(stall=1)) as server, closing(server.client()) as client:
        client.sendall(server.head("GET /"))
        found = len(client.recv(2**16))
        for _ in range(6):  # three times as long as a client may stop
            time.sleep(0.5)
            until = found + BIG // 8
            while found < until:
                found += len(client.recv(2**16))
        while found < BIG:
            found += len(client.recv(2**20))


# ---- many clients -------------------------------------------------------------------------------


def test_of_too_many_connections_the_one_that_waits_for_longest_goes(page: Any) -> None:
    with page(Limits(connections=3)) as server:
        clients = [server.client() for _ in range(3)]
        try:
            assert [server.status(one) for one in clients] == [200] * 3
            assert server.status(clients[0]) == 200  # all three stay, and the second waits longest
            clients.append(server.client())
            assert server.status(clients[3]) == 200
            assert rest(clients[1]) == b""
            assert [server.status(clients[i]) for i in (0, 2, 3)] == [200] * 3
        finally:
            for one in clients:
                one.close()


def test_if_all_are_at_work_another_one_is_told_to_come_back(page: Any, tmp_path: Path) -> None:
    with page(Limits(connections=2)) as server:
        clients = [server.client() for _ in range(2)]
        try:
            for one in clients:
                one.sendall(server.upload(20) + b"patient,a\n")
            while len(list((tmp_path / "uploads").iterdir())) < 2:
                time.sleep(0.01)
            clients.append(server.client())
            assert server.status(clients[2]) == 503
            for one in clients[:2]:
                one.sendall(b"patient,b\n")
                assert status_of(one) == 201
        finally:
            for one in clients:
                one.close()


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
    with page(SOON) as server, closing(server.client()) as client:
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
    with page(Limits()) as server, closing(server.client()) as client:
        start = "PUT /api/uploads?name=a.csv"
        client.sendall(server.head(start, "Transfer-Encoding: chunked", token=token))
        if token == "wrong":
            assert status_of(client) == 403
        client.sendall(b"2\r\nab\r\nnonsense\r\n")
        rest(client)
        server.empty()
        assert list((tmp_path / "uploads").iterdir()) == []
    assert capfd.readouterr() == ("", "")
