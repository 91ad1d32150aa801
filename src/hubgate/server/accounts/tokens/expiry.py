"""Marks expired tokens, and mails users a week before a token expires: once, however many processes run."""

from msgspec import Struct

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.tokens import expiry_store as store
from hubgate.server.accounts.tokens.personal import TOKENS_PAGE
from hubgate.server.clock import iso
from hubgate.server.mail import texts
from hubgate.server.storage.database import Tx

EVERY_SECONDS = 60.0
_BATCH = 100


class TokenExpiry(Struct, frozen=True):
    accounts: Accounts

    async def step(self) -> bool:
        """Process a batch, and return whether more batches follow."""
        accounts, now = self.accounts, self.accounts.clock()

        async def unit(tx: Tx) -> bool:
            expired = await store.mark_expired(tx, now, _BATCH)
            expiring = await store.mark_notified(tx, now, _BATCH)
            for row in expiring:
                user = await account_store.user(tx, row["user_id"])
                # As for new tokens, the name is sent to a verified address only.
                if user is not None and user.email_verified_at is not None and user.disabled_at is None:
                    when, link = iso(row["expires_at"]), accounts.link(TOKENS_PAGE)
                    await accounts.outbox.add(tx, texts.token_expires(user.email, row["name"], when, link))
            return _BATCH in (expired, len(expiring))

        if not await accounts.db.read_long(lambda tx: store.has_work(tx, now)):
            return False
        more = await accounts.db.write_long(unit)
        accounts.outbox.send_soon()
        return more
