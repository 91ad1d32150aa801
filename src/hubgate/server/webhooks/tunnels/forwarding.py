"""Sends a request to a receiver behind a tunnel, from any process, and waits for the answer."""

import asyncio
from collections.abc import Iterable

from hubgate.server.clock import Clock
from hubgate.server.errors import GatewayTimeout, NotFound, Unavailable
from hubgate.server.ids import new_id
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.signals import Signal
from hubgate.server.webhooks.tunnels import store
from hubgate.server.webhooks.tunnels.model import (
    REQUEST_LIFETIME,
    Answer,
    RequestHead,
    answer_from,
    forwarded_headers,
    pack,
)
from hubgate.server.webhooks.tunnels.signalled_loop import SignalledLoop

NO_LINK = "This link does not exist, or it has expired."


class TunnelBusy(Unavailable):
    """Too many requests of this tunnel have no answer yet. Nothing was sent."""

    def __init__(self) -> None:
        super().__init__("Too many requests to this receiver have no answer yet. Try again.")


class Forwarding:
    def __init__(self, db: Database, clock: Clock, secret: ServerSecret, process: str, max_waiting: int) -> None:
        self._db, self._clock, self._secret, self._process = db, clock, secret, process
        self._max_waiting = max_waiting
        self._waiting: dict[str, asyncio.Future[Answer]] = {}
        self._loop = SignalledLoop(db, Signal.TUNNEL_ANSWERS, self._take_answers)

    async def close(self) -> None:
        await self._loop.close()

    async def forward(
        self,
        tunnel_id: str,
        path: str,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        seconds: float,
    ) -> Answer:
        """The receiver's answer. Raises NotFound if the tunnel does not exist, TunnelBusy if nothing was sent, and
        GatewayTimeout without an answer in time: the receiver may have processed the request.
        """
        request_id = new_id(self._clock())
        message = pack(RequestHead(request_id, path, forwarded_headers(headers)), body)
        sealed = self._secret.seal(message, request_location(request_id))
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answered
        is_stored = False
        try:
            async with asyncio.timeout(seconds):
                await self._db.write(lambda tx: self._store(tx, request_id, tunnel_id, sealed))
                is_stored = True
                self._loop.wake()
                return await answered
        except TimeoutError:
            raise GatewayTimeout("The receiver did not answer in time.") from None
        finally:
            del self._waiting[request_id]
            # The timeout cancels `answered`, as does the end of the task that waits.
            if is_stored and (not answered.done() or answered.cancelled()):
                await asyncio.shield(self._db.write(lambda tx: store.remove_request(tx, request_id)))

    async def _store(self, tx: Tx, request_id: str, tunnel_id: str, sealed: bytes) -> None:
        now = self._clock()
        # Concurrent requests are counted one after the other.
        if not await store.lock(tx, tunnel_id, now):
            raise NotFound(NO_LINK)
        if await store.count_requests(tx, tunnel_id) >= self._max_waiting:
            raise TunnelBusy
        await store.add_request(tx, request_id, tunnel_id, self._process, sealed, now + REQUEST_LIFETIME)
        tx.signal(Signal.TUNNEL_REQUESTS)

    async def _take_answers(self) -> bool:
        if self._waiting and await store.has_answers(self._db, self._process):
            for row in await self._db.write(lambda tx: store.take_answers(tx, self._process)):
                waiting = self._waiting.get(row["id"])
                if waiting is not None and not waiting.done():
                    _, answer = answer_from(self._secret.open(row["answer"], answer_location(row["id"])))
                    waiting.set_result(answer)
        return bool(self._waiting)


def request_location(request_id: str) -> str:
    return f"tunnel_requests.request/{request_id}"


def answer_location(request_id: str) -> str:
    return f"tunnel_requests.answer/{request_id}"
