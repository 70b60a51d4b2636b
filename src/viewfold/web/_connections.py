"""Connections that cost something and bring nothing are closed.

uvicorn waits for ever for the rest of a request, and for a client that does not read its answer.
What it has itself is used: a time limit for idle connections, and one on concurrent requests.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass(frozen=True)
class Limits:
    """How long the server waits for a client, and for how many clients.

    Attributes
    ----------
    head : float
        Seconds until the header of a request is complete, from its first byte or the connection.
    stall : float
        Seconds without progress of a body, or of a client that reads its answer.
    rate : float
        Bytes a second of a body that count as progress: whoever sends less, a byte now and then,
        uses up ``stall``.
    connections : int
        How many are open at a time. Of more, the one goes that has been without a request for
        longest; if all have one, the newest gets 503.
    """

    head: float = 15.0
    stall: float = 60.0
    rate: float = 1000.0
    connections: int = 100


def server_of(app: Any, limits: Limits) -> uvicorn.Server:
    """Return the server of an ASGI application, which says nothing by itself."""
    config = uvicorn.Config(
        app,
        http=protocol_of(limits),
        lifespan="off",
        log_config=None,
        log_level="critical",  # errors are answers, and told by `_errors`
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        limit_concurrency=limits.connections + 1,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def protocol_of(limits: Limits) -> type[H11Protocol]:
    """Return the class of a connection that keeps to limits, for ``uvicorn.Config(http=...)``."""
    patience = {h11.IDLE: limits.head, h11.SEND_BODY: limits.stall}

    class Connection(H11Protocol):
        """A client, and until when it has to send or to read on."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.owed: Any = None  # the part of a request that the client has not finished
            self.deadline = self.heard = self.loop.time()
            self.sending: asyncio.TimerHandle | None = None
            self.reading: asyncio.TimerHandle | None = None
            self._expect()
            idle = [one for one in self.connections if one is not self and _is_idle(one)]
            if len(self.connections) > limits.connections and idle:
                oldest = min(idle, key=lambda one: one.heard)  # type: ignore[union-attr]
                self.connections.discard(oldest)
                oldest.transport.close()

        def connection_lost(self, exc: Exception | None) -> None:
            for timer in (self.sending, self.reading):
                if timer is not None:
                    timer.cancel()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            self.heard = self.loop.time()
            if self.owed is h11.SEND_BODY:
                earned = self.deadline + len(data) / limits.rate
                self.deadline = min(self.heard + limits.stall, earned)
            super().data_received(data)
            self._expect()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self.heard = self.loop.time()
            self._expect()  # what came after the request may be half of another one

        def _expect(self) -> None:
            """Set a deadline for the part of a request that is next, if it is another part."""
            before, self.owed = self.owed, self.conn.their_state
            if self.owed not in patience or self.timeout_keep_alive_task is not None:
                self.owed = None  # nothing is owed, or uvicorn's own timer runs
            if self.owed is before:
                return
            if self.sending is not None:
                self.sending.cancel()
            if self.owed is not None:
                self.deadline = self.loop.time() + patience[self.owed]
                self.sending = self.loop.call_at(self.deadline, self._check_sent)

        def _check_sent(self) -> None:
            now = self.loop.time()
            if self.flow.read_paused:  # it is the server that is slow
                self.deadline = now + limits.stall
            if now < self.deadline:
                self.sending = self.loop.call_at(self.deadline, self._check_sent)
            else:
                self.transport.close()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._check_read(None)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self.reading is not None:
                self.reading.cancel()

        def _check_read(self, before: int | None) -> None:
            left = self.transport.get_write_buffer_size()
            if before is not None and left >= before:
                self.transport.abort()
            else:
                self.reading = self.loop.call_later(limits.stall, self._check_read, left)

    return Connection


def _is_idle(connection: Any) -> bool:
    """Tell whether no request of a connection is being answered."""
    return connection.cycle is None or connection.cycle.response_complete
