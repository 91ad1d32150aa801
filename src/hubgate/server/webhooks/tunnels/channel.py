"""The way of requests between processes: any process stores them, the one with the receiver sends them."""

from collections.abc import Sequence

from msgspec import Struct

from hubgate.server.clock import Clock
from hubgate.server.secret import CannotOpen, ServerSecret
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.signals import Signal
from hubgate.server.webhooks.tunnels.requests_store import TUNNEL_REQUESTS, RequestTable
from hubgate.server.webhooks.tunnels.signalled_loop import log

TAKEN_AT_ONCE = 64


class Channel(Struct, frozen=True):
    """The requests to one kind of receivers. The signals announce new requests, and answers."""

    table: RequestTable
    new: Signal
    answered: Signal

    def request_location(self, request_id: str) -> str:
        return f"{self.table.name}.request/{request_id}"

    def answer_location(self, request_id: str) -> str:
        return f"{self.table.name}.answer/{request_id}"


TUNNELS = Channel(TUNNEL_REQUESTS, Signal.TUNNEL_REQUESTS, Signal.TUNNEL_ANSWERS)


class TakenRequest(Struct, frozen=True):
    id: str
    receiver_id: str
    # As `model.pack` writes it.
    message: bytes


class Receiving:
    """The side of a channel that has the receivers. `process` is the id of this process in their table."""

    def __init__(self, db: Database, clock: Clock, secret: ServerSecret, process: str, channel: Channel) -> None:
        self._db, self._clock, self._secret, self._process, self._channel = db, clock, secret, process, channel

    async def take(self) -> list[TakenRequest]:
        """Mark some waiting requests as sent. Each is sent at most once, by one process."""
        table, channel = self._channel.table, self._channel
        request_ids: Sequence[str] = await table.unsent(self._db, self._process, TAKEN_AT_ONCE)
        if not request_ids:
            return []
        taken = []
        now = self._clock()
        for row in await self._db.write(lambda tx: table.take(tx, request_ids, self._process, now)):
            try:
                message = self._secret.open(row["request"], channel.request_location(row["id"]))
            except CannotOpen:
                log.exception("request %s cannot be forwarded: processes have different secret keys", row["id"])
                continue
            taken.append(TakenRequest(row["id"], row["receiver_id"], message))
        return taken

    async def answer(self, receiver_id: str, request_id: str, message: bytes) -> None:
        """Store an answer, as `model.pack` writes it."""
        sealed = self._secret.seal(message, self._channel.answer_location(request_id))

        async def unit(tx: Tx) -> None:
            if await self._channel.table.put_answer(tx, receiver_id, request_id, sealed):
                tx.signal(self._channel.answered)

        await self._db.write(unit)
