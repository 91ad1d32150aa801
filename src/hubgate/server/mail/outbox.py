"""The outbox: mail that is committed with its cause and sent afterwards, at least once.

It is sealed while it waits, because a reset link in a stolen database would open an account. The process that put a
mail there tries at once; the background process tries again what failed.
"""

import asyncio
import logging
from dataclasses import dataclass, field

import msgspec

from hubgate.server.clock import DAY, MINUTE, SECOND, Clock
from hubgate.server.ids import new_id
from hubgate.server.mail import store
from hubgate.server.mail.message import Message, as_email
from hubgate.server.mail.transport import NotSent, Transport
from hubgate.server.secret import CannotOpen, ServerSecret
from hubgate.server.storage.database import Database, Row, Tx

log = logging.getLogger("hubgate.mail")

BATCH = 20
# Longer than a transport may take, so that a sender that died is followed by another.
TAKEN_FOR = 2 * MINUTE
PAUSES = (30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, 60 * MINUTE)
WORTH_SENDING_FOR = DAY


@dataclass(frozen=True)
class Outbox:
    db: Database
    secret: ServerSecret
    clock: Clock
    transport: Transport
    sender: str
    base_url: str
    _tries: set[asyncio.Task[bool]] = field(default_factory=set)

    async def add(self, tx: Tx, message: Message) -> None:
        """In the transaction of the change that causes it. Call `hurry` once that is committed."""
        now = self.clock()
        mail_id = new_id(now)
        sealed = self.secret.seal(msgspec.json.encode(message), _place(mail_id))
        await store.add(tx, mail_id, sealed, due_at=now, expires_at=now + WORTH_SENDING_FOR)

    def hurry(self) -> None:
        """Try now, beside the answer that is being given."""
        task = asyncio.create_task(self.send_due())
        self._tries.add(task)
        task.add_done_callback(self._tries.discard)

    async def send_due(self) -> bool:
        """One batch. Whether there may be more at once."""
        rows = await self.db.read_long(lambda tx: store.due(tx, self.clock(), BATCH))
        for row in rows:
            await self._send(row)
        return len(rows) == BATCH

    async def finish(self) -> None:
        """Let tries that are under way end, before the database is closed."""
        if self._tries:
            await asyncio.wait(self._tries, timeout=5)

    async def _send(self, row: Row) -> None:
        mail_id, now = row["id"], self.clock()
        taken_until = now + TAKEN_FOR
        if not await self.db.write(lambda tx: store.move(tx, mail_id, row["due_at"], taken_until)):
            return
        if now >= row["expires_at"]:
            log.error("mail %s was not sent within a day and is dropped", mail_id)
        else:
            try:
                await self._hand_over(mail_id, row["sealed"], now)
            except NotSent as error:
                log.warning("mail %s was not sent: %s", mail_id, error)
                if not error.permanent:
                    again_at = now + PAUSES[min(row["attempts"], len(PAUSES) - 1)]
                    await self.db.write(lambda tx: store.move(tx, mail_id, taken_until, again_at))
                    return
        await self.db.write(lambda tx: store.remove(tx, mail_id))

    async def _hand_over(self, mail_id: str, sealed: bytes, now: int) -> None:
        try:
            message = msgspec.json.decode(self.secret.open(sealed, _place(mail_id)), type=Message)
        except CannotOpen:
            raise NotSent("it was sealed under a key that is gone", permanent=True) from None
        await self.transport(mail_id, as_email(message, mail_id, self.sender, self.base_url, now))


def _place(mail_id: str) -> str:
    return f"mails/{mail_id}"
