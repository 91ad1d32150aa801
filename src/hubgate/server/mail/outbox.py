"""The outbox: mail that is committed with its cause and sent afterwards, at least once.

It is sealed while it waits, because a reset link in a stolen database would open an account. The process that put a
mail there tries at once; the background process tries again what failed, and what a process that died had taken.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial

import msgspec

from hubgate.server.clock import DAY, MINUTE, SECOND, Clock
from hubgate.server.errors import HubError
from hubgate.server.ids import new_id
from hubgate.server.mail import store
from hubgate.server.mail.message import Message, as_email
from hubgate.server.mail.transport import NotSent, Transport
from hubgate.server.secret import CannotOpen, ServerSecret
from hubgate.server.storage.database import Database, Row, Tx

log = logging.getLogger("hubgate.mail")

BATCH = 20
# Longer than a transport may take, so that a sender that died is followed by another and a slow one is not.
TAKEN_FOR = 2 * MINUTE
PAUSES = (30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, 60 * MINUTE)
WORTH_SENDING_FOR = DAY
# A command waits this long for a slow server before it leaves its mail to the background process.
PATIENCE_SECONDS = 3.0


@dataclass
class Outbox:
    db: Database
    secret: ServerSecret
    clock: Clock
    transport: Transport
    sender: str
    base_url: str
    _trying: "asyncio.Task[None] | None" = field(default=None, repr=False)
    _wanted: bool = False

    async def add(self, tx: Tx, message: Message) -> None:
        """In the transaction of the change that causes it. Call `hurry` once that is committed."""
        now = self.clock()
        mail_id = new_id(now)
        sealed = self.secret.seal(msgspec.json.encode(message), _place(mail_id))
        await store.add(tx, mail_id, sealed, due_at=now, expires_at=now + WORTH_SENDING_FOR)

    def hurry(self) -> None:
        """Try now, beside the answer that is being given; one mail at a time, however many callers are in a hurry."""
        self._wanted = True
        if self._trying is None or self._trying.done():
            self._trying = asyncio.create_task(self._try())

    async def finish(self) -> None:
        """Let the mail that is under way leave, before the database is closed. The rest stays for a later sender."""
        if self._trying is not None:
            await asyncio.wait([self._trying], timeout=PATIENCE_SECONDS)
            self._trying.cancel()
            await asyncio.wait([self._trying])

    async def send_due(self) -> bool:
        """One batch. Whether there may be more at once."""
        now = self.clock()
        rows = await self.db.read_long(lambda tx: store.due(tx, now, BATCH))
        for row in rows:
            await self._send(row)
        return len(rows) == BATCH

    async def reseal(self) -> int:
        """Seal what waits under the first configured secret; how many were changed."""
        changed = 0
        for row in await self.db.read_long(store.sealed):
            mail_id, old = row["id"], bytes(row["sealed"])
            if self.secret.is_sealed_with_first(old):
                continue
            try:
                plain = self.secret.open(old, _place(mail_id))
            except CannotOpen:
                # Nobody can send it any more; the next sender drops it and says so.
                continue
            new = self.secret.seal(plain, _place(mail_id))
            changed += await self.db.write(partial(store.reseal, mail_id=mail_id, old=old, new=new))
        return changed

    async def _try(self) -> None:
        while self._wanted:
            self._wanted = False
            try:
                while await self.send_due():
                    continue
            except HubError as error:
                log.warning("mail waits for the background process: %s", error)

    async def _send(self, row: Row) -> None:
        mail_id, now = row["id"], self.clock()
        taken_until = now + TAKEN_FOR
        if not await self.db.write(lambda tx: store.take(tx, mail_id, row["due_at"], taken_until)):
            return
        failure = await self._tried(row, now)
        if failure is not None and not failure.permanent:
            again_at = now + PAUSES[min(row["attempts"], len(PAUSES) - 1)]
            await self.db.write(lambda tx: store.put_off(tx, mail_id, taken_until, again_at))
            log.warning("mail %s was not sent and will be tried again: %s", mail_id, failure)
            return
        await self.db.write(lambda tx: store.remove(tx, mail_id))
        if failure is not None:
            log.error("mail %s cannot be sent and is dropped: %s", mail_id, failure)

    async def _tried(self, row: Row, now: int) -> NotSent | None:
        if now >= row["expires_at"]:
            return NotSent("it has waited for a day", permanent=True)
        mail_id = row["id"]
        try:
            message = msgspec.json.decode(self.secret.open(bytes(row["sealed"]), _place(mail_id)), type=Message)
            mail = as_email(message, mail_id, self.sender, self.base_url, now)
            await self.transport(mail_id, mail, message.recipient)
        except CannotOpen:
            return NotSent("it was sealed under a key that is gone", permanent=True)
        except NotSent as error:
            return error
        except ValueError as error:
            # Tried again it would fail again, and hold up all that is due after it.
            return NotSent(f"it cannot be written: {type(error).__name__}", permanent=True)
        return None


def _place(mail_id: str) -> str:
    return f"mails/{mail_id}"
