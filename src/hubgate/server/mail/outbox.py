"""The outbox: mail that is committed together with the change that causes it, then sent at least once.

Queued mail is encrypted, because a reset link in a stolen database would give access to an account. The process that
adds a mail tries to send it at once; the background process retries failed mail and mail whose sender died.
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
# The lease of a sender: longer than a transport may take, so that only a dead sender is replaced, not a slow sender.
LEASE_DURATION = 2 * MINUTE
RETRY_DELAYS = (30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, 60 * MINUTE)
LIFETIME = DAY
# How long a process waits for a slow server on exit before leaving the mail to the background process.
SHUTDOWN_SECONDS = 3.0


@dataclass
class Outbox:
    db: Database
    secret: ServerSecret
    clock: Clock
    transport: Transport
    sender: str
    base_url: str
    _task: "asyncio.Task[None] | None" = field(default=None, repr=False)
    _is_requested: bool = False

    async def add(self, tx: Tx, message: Message) -> None:
        """Add a message in the transaction of the change that causes it. Call `send_soon` after the commit."""
        now = self.clock()
        mail_id = new_id(now)
        sealed = self.secret.seal(msgspec.json.encode(message), _context(mail_id))
        await store.add(tx, mail_id, sealed, due_at=now, expires_at=now + LIFETIME)

    def send_soon(self) -> None:
        """Send due mail now, in a background task: one mail at a time, however many callers ask."""
        self._is_requested = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._send_all_due())

    async def finish(self) -> None:
        """Wait briefly for mail in flight before the database is closed. Other mail stays queued for a later sender."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=SHUTDOWN_SECONDS)
            self._task.cancel()
            await asyncio.wait([self._task])

    async def send_due(self) -> bool:
        """Send one batch of due mail; True if more may be due."""
        now = self.clock()
        rows = await self.db.read_long(lambda tx: store.due(tx, now, BATCH))
        for row in rows:
            await self._send(row)
        return len(rows) == BATCH

    async def reseal(self) -> int:
        """Encrypt queued mail again under the first configured secret; returns how many mails changed."""
        changed = 0
        for row in await self.db.read_long(store.sealed):
            mail_id, old = row["id"], bytes(row["sealed"])
            if self.secret.is_sealed_with_first_key(old):
                continue
            try:
                plain = self.secret.open(old, _context(mail_id))
            except CannotOpen:
                # Cannot be decrypted: the next sender drops this mail and logs an error.
                continue
            new = self.secret.seal(plain, _context(mail_id))
            changed += await self.db.write(partial(store.reseal, mail_id=mail_id, old=old, new=new))
        return changed

    async def _send_all_due(self) -> None:
        while self._is_requested:
            self._is_requested = False
            try:
                while await self.send_due():
                    continue
            except HubError as error:
                log.warning("mail is left to the background process: %s", error)

    async def _send(self, row: Row) -> None:
        mail_id, now = row["id"], self.clock()
        leased_until = now + LEASE_DURATION
        if not await self.db.write(lambda tx: store.lease(tx, mail_id, row["due_at"], leased_until)):
            return
        failure = await self._attempt(row, now)
        if failure is not None and not failure.permanent:
            retry_at = now + RETRY_DELAYS[min(row["attempts"], len(RETRY_DELAYS) - 1)]
            await self.db.write(lambda tx: store.postpone(tx, mail_id, leased_until, retry_at))
            log.warning("mail %s was not sent and will be retried: %s", mail_id, failure)
            return
        await self.db.write(lambda tx: store.remove(tx, mail_id))
        if failure is not None:
            log.error("mail %s cannot be sent and was dropped: %s", mail_id, failure)

    async def _attempt(self, row: Row, now: int) -> NotSent | None:
        if now >= row["expires_at"]:
            return NotSent("it could not be sent for a day", permanent=True)
        mail_id = row["id"]
        try:
            message = msgspec.json.decode(self.secret.open(bytes(row["sealed"]), _context(mail_id)), type=Message)
            mail = as_email(message, mail_id, self.sender, self.base_url, now)
            await self.transport(mail_id, mail, message.recipient)
        except CannotOpen:
            return NotSent("it was sealed with a key that is no longer configured", permanent=True)
        except NotSent as error:
            return error
        except ValueError as error:
            # A retry would fail again and delay the mail behind it.
            return NotSent(f"it cannot be encoded: {type(error).__name__}", permanent=True)
        return None


def _context(mail_id: str) -> str:
    return f"mails/{mail_id}"
