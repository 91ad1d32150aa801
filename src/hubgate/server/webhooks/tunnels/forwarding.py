"""Sends a request to a receiver that is connected to another process, and waits for the answer."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from hubgate.server.clock import Clock
from hubgate.server.errors import GatewayTimeout, Unavailable
from hubgate.server.ids import new_id
from hubgate.server.secret import CannotOpen, ServerSecret
from hubgate.server.storage.database import Database, Tx
from hubgate.server.webhooks.tunnels.channel import Channel
from hubgate.server.webhooks.tunnels.model import (
    REQUEST_LIFETIME,
    Answer,
    BadMessage,
    RequestHead,
    answer_from,
    forwarded_headers,
    pack,
)
from hubgate.server.webhooks.tunnels.signalled_loop import SignalledLoop, log


class ReceiverBusy(Unavailable):
    """Too many requests to this receiver have no answer yet. Nothing was sent."""

    def __init__(self) -> None:
        super().__init__("Too many requests to this receiver have no answer yet. Try again.")


class ReceiverStarting(Unavailable):
    """The receiver does not run yet. Nothing was sent."""

    def __init__(self) -> None:
        super().__init__("The receiver is starting. Try again.", retry_after=15)


class ReceiverDown(Unavailable):
    """The receiver does not run, and a request does not start it. Nothing was sent."""


# Called with the receiver and the time in the transaction that stores a request. Locks the receiver, so that concurrent
# requests are counted one after the other; raises if no request may be stored.
Admit = Callable[[Tx, str, int], Awaitable[None]]


class Forwarding:
    """`starts`: receivers start when they get a request, so a request may not be sent in time."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        secret: ServerSecret,
        process: str,
        channel: Channel,
        admit: Admit,
        max_waiting: int,
        *,
        starts: bool = False,
    ) -> None:
        self._db, self._clock, self._secret, self._process = db, clock, secret, process
        self._channel, self._admit, self._max_waiting, self._starts = channel, admit, max_waiting, starts
        self._waiting: dict[str, asyncio.Future[Answer]] = {}
        self._loop = SignalledLoop(db, channel.answered, self._take_answers)

    async def close(self) -> None:
        await self._loop.close()

    async def forward(
        self,
        receiver_id: str,
        path: str,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        seconds: float,
    ) -> Answer:
        """The receiver's answer. Raises what `admit` does, ReceiverBusy or ReceiverStarting if nothing was sent, and
        GatewayTimeout without an answer in time: the receiver may have processed the request.
        """
        request_id = new_id(self._clock())
        message = pack(RequestHead(request_id, path, forwarded_headers(headers)), body)
        sealed = self._secret.seal(message, self._channel.request_location(request_id))
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answered
        is_stored = False
        try:
            async with asyncio.timeout(seconds):
                await self._db.write(lambda tx: self._store(tx, request_id, receiver_id, sealed))
                is_stored = True
                self._loop.wake()
                return await answered
        except TimeoutError:
            if is_stored:
                was_sent = await self._remove(request_id)
                is_stored = False
                if self._starts and not was_sent:
                    raise ReceiverStarting from None
            raise GatewayTimeout("The receiver did not answer in time.") from None
        finally:
            del self._waiting[request_id]
            # The end of the task that waits cancels `answered`.
            if is_stored and (not answered.done() or answered.cancelled()):
                await asyncio.shield(self._remove(request_id))

    async def _remove(self, request_id: str) -> bool:
        return await self._db.write(lambda tx: self._channel.table.remove(tx, request_id))

    async def _store(self, tx: Tx, request_id: str, receiver_id: str, sealed: bytes) -> None:
        now, table = self._clock(), self._channel.table
        await self._admit(tx, receiver_id, now)
        if await table.count(tx, receiver_id) >= self._max_waiting:
            raise ReceiverBusy
        await table.add(tx, request_id, receiver_id, self._process, sealed, now + REQUEST_LIFETIME)
        tx.signal(self._channel.new)

    async def _take_answers(self) -> bool:
        table = self._channel.table
        if self._waiting and await table.has_answers(self._db, self._process):
            for row in await self._db.write(lambda tx: table.take_answers(tx, self._process)):
                waiting = self._waiting.get(row["id"])
                if waiting is None or waiting.done():
                    continue
                try:
                    _, answer = answer_from(self._secret.open(row["answer"], self._channel.answer_location(row["id"])))
                except (BadMessage, CannotOpen):
                    # Its request times out. The other rows are deleted too: their answers must not be lost.
                    log.exception("the answer to request %s cannot be read", row["id"])
                    continue
                waiting.set_result(answer)
        return bool(self._waiting)
