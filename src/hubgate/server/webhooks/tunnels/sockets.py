"""The WebSockets of receivers' programs in this process: sends them requests and stores their answers."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from hubgate.server.clock import Clock
from hubgate.server.errors import StorageUnavailable
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.signals import Signal
from hubgate.server.webhooks.tunnels import store
from hubgate.server.webhooks.tunnels.channel import TUNNELS, Receiving
from hubgate.server.webhooks.tunnels.model import Tunnel, TunnelLimits, answer_from
from hubgate.server.webhooks.tunnels.signalled_loop import SignalledLoop

# A connection remembers this many times the number of requests that may wait. Older ones have timed out.
UNANSWERED_FACTOR = 4

# Close codes, for the receiver's program: whether it may connect again.
REPLACED, GONE, SILENT, NOT_ALLOWED, MALFORMED, UNAVAILABLE = 4000, 4404, 4408, 4401, 4400, 1013
REASONS = {
    REPLACED: "Another program uses this link now.",
    GONE: "The link has expired or was closed.",
    SILENT: "Nothing was received for a minute, or requests were not read.",
    NOT_ALLOWED: "The token is no longer valid, or it lacks the webhooks scope.",
    UNAVAILABLE: "The hub's database does not respond.",
    MALFORMED: "A message does not follow the protocol.",
}


@dataclass(eq=False)
class Socket:
    """A connected program. `outgoing` has messages to send, `closing` gets the code to close the connection with, even
    while the program reads nothing.
    """

    tunnel: Tunnel
    max_waiting: int
    outgoing: "asyncio.Queue[bytes]" = field(default_factory=asyncio.Queue)
    closing: "asyncio.Future[int]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    heard_at: float = field(default_factory=time.monotonic)
    # Before that, the database does not name this process.
    is_attached: bool = False
    # The ids of requests that were sent here, the oldest first.
    _unanswered: dict[str, None] = field(default_factory=dict)

    def close(self, code: int) -> None:
        if not self.closing.done():
            self.closing.set_result(code)

    def put(self, request_id: str, message: bytes) -> None:
        if self.outgoing.qsize() >= self.max_waiting:
            self.close(SILENT)
            return
        self.outgoing.put_nowait(message)
        self._unanswered[request_id] = None
        if len(self._unanswered) > UNANSWERED_FACTOR * self.max_waiting:
            del self._unanswered[next(iter(self._unanswered))]

    def take_unanswered(self, request_id: str) -> bool:
        """Whether this is the first answer to a request that was sent here."""
        is_first = request_id in self._unanswered
        self._unanswered.pop(request_id, None)
        return is_first


class Sockets:
    def __init__(self, db: Database, clock: Clock, secret: ServerSecret, process: str, limits: TunnelLimits) -> None:
        self._db, self._clock, self._process, self._limits = db, clock, process, limits
        self._receiving = Receiving(db, clock, secret, process, TUNNELS)
        self._sockets: dict[str, Socket] = {}
        self._loop = SignalledLoop(db, TUNNELS.new, self._step)

    async def close(self) -> None:
        await self._loop.close()

    async def run(
        self,
        tunnel: Tunnel,
        receive: Callable[[], Awaitable[bytes | None]],
        send: Callable[[bytes], Awaitable[None]],
        still_allowed: Callable[[], Awaitable[bool]],
        check_seconds: float,
    ) -> int:
        """Serve a connection until it ends; the code to close it with.

        `receive` returns the next message, or None at the end; `still_allowed` is called every `check_seconds`.
        """
        socket = Socket(tunnel, self._limits.waiting)
        tasks: list[asyncio.Future[int]] = [socket.closing]
        try:
            await self._attach(socket)
            tasks += [
                asyncio.create_task(self._receive(socket, receive)),
                asyncio.create_task(_send(socket, send, self._limits.stall_seconds)),
                asyncio.create_task(_watch(still_allowed, check_seconds)),
            ]
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return next(iter(ended)).result()
        except StorageUnavailable:
            # The program connects again.
            return UNAVAILABLE
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._detach(socket)

    async def _attach(self, socket: Socket) -> None:
        tunnel = socket.tunnel
        if before := self._sockets.get(tunnel.id):
            before.close(REPLACED)
        self._sockets[tunnel.id] = socket

        async def unit(tx: Tx) -> bool:
            # The process that had the connection before finds out at its next step.
            tx.signal(Signal.TUNNEL_REQUESTS)
            return await store.attach(tx, tunnel.id, self._process, self._clock())

        if not await self._db.write(unit):
            socket.close(GONE)
        socket.is_attached = True
        self._loop.wake()

    async def _detach(self, socket: Socket) -> None:
        if self._sockets.get(socket.tunnel.id) is socket:
            del self._sockets[socket.tunnel.id]
            with contextlib.suppress(StorageUnavailable):
                await asyncio.shield(self._db.write(lambda tx: store.detach(tx, socket.tunnel.id, self._process)))

    async def _receive(self, socket: Socket, receive: Callable[[], Awaitable[bytes | None]]) -> int:
        while (message := await receive()) is not None:
            socket.heard_at = time.monotonic()
            if not message:
                continue
            try:
                request_id, _ = answer_from(message)
            except ValueError:
                return MALFORMED
            if not socket.take_unanswered(request_id):
                # Otherwise a program could write to the database as often as it sends.
                continue
            await self._receiving.answer(socket.tunnel.id, request_id, message)
        return 0

    async def _step(self) -> bool:
        """Send new requests, and close connections that are silent or no longer belong here."""
        if not self._sockets:
            return False
        now, moment = self._clock(), time.monotonic()
        # Before the query: it does not find a tunnel that is attached after it.
        attached = [(tunnel_id, socket) for tunnel_id, socket in self._sockets.items() if socket.is_attached]
        current = await store.attached(self._db, self._process, now)
        for tunnel_id, socket in attached:
            if moment - socket.heard_at > self._limits.silence_seconds:
                socket.close(SILENT)
            elif tunnel_id not in current:
                socket.close(GONE if await store.find(self._db, tunnel_id, now) is None else REPLACED)
        while taken := await self._receiving.take():
            for request in taken:
                if found := self._sockets.get(request.receiver_id):
                    found.put(request.id, request.message)
        return True


async def _send(socket: Socket, send: Callable[[bytes], Awaitable[None]], stall_seconds: float) -> int:
    while True:
        message = await socket.outgoing.get()
        try:
            async with asyncio.timeout(stall_seconds):
                await send(message)
        except TimeoutError:
            return SILENT


async def _watch(still_allowed: Callable[[], Awaitable[bool]], seconds: float) -> int:
    while True:
        await asyncio.sleep(seconds)
        if not await still_allowed():
            return NOT_ALLOWED
