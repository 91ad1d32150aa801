"""Deletes expired rows in small batches, so that tables stay small and look-ups fast."""

from msgspec import Struct

from hubgate.server.accounts.links import store as link_store
from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.accounts.sessions import store as session_store
from hubgate.server.accounts.sessions.model import SESSION_LIFETIME
from hubgate.server.accounts.tokens import expiry_store
from hubgate.server.accounts.tokens.model import EXPIRED_RETENTION
from hubgate.server.clock import Clock
from hubgate.server.oauth.apps import store as app_store
from hubgate.server.oauth.cimd import store as document_store
from hubgate.server.oauth.cimd.documents import STALE_IF_ERROR
from hubgate.server.oauth.device.model import RETENTION
from hubgate.server.oauth.explain import store as error_store
from hubgate.server.oauth.explain.model import RETAINED_FOR as ERRORS_RETAINED_FOR
from hubgate.server.oauth.registration import store as registration_store
from hubgate.server.oauth.registration.use import UNUSED_LIFETIME
from hubgate.server.oauth.resource_servers import store as resource_store
from hubgate.server.oauth.tokens import store as token_store
from hubgate.server.oauth.tokens.model import CODE_RETENTION
from hubgate.server.spaces.hosting import CHANNEL as SPACE_CHANNEL
from hubgate.server.storage.database import Database
from hubgate.server.throttle import store as throttle_store
from hubgate.server.webhooks.tunnels import store as tunnel_store
from hubgate.server.worker.loops import Loop

BATCH = 500


class Sweep(Struct, frozen=True):
    db: Database
    clock: Clock

    def loop(self) -> Loop:
        return Loop("sweep", every_seconds=30, step=self.step)

    async def step(self) -> bool:
        now = self.clock()
        dropped = [
            await self.db.write_long(lambda tx: throttle_store.drop_expired(tx, now, BATCH)),
            await self.db.write_long(lambda tx: session_store.drop_expired(tx, now - SESSION_LIFETIME, BATCH)),
            await self.db.write_long(lambda tx: link_store.drop_expired(tx, now, BATCH)),
            await self.db.write_long(lambda tx: expiry_store.drop_expired(tx, now - EXPIRED_RETENTION, BATCH)),
            await self.db.write_long(lambda tx: org_store.drop_expired_invitations(tx, now, BATCH)),
            await self.db.write_long(lambda tx: tunnel_store.drop_expired(tx, now, BATCH)),
            await self.db.write_long(lambda tx: SPACE_CHANNEL.table.drop_expired(tx, now, BATCH)),
            *await self._drop_expired_app_rows(now),
        ]
        return BATCH in dropped

    async def _drop_expired_app_rows(self, now: int) -> list[int]:
        """Delete expired rows of apps. Codes and device codes are retained for a while after they expire."""
        write = self.db.write_long
        return [
            await write(lambda tx: token_store.drop_expired(tx, "codes", now - CODE_RETENTION, BATCH)),
            await write(lambda tx: token_store.drop_expired(tx, "device_codes", now - RETENTION, BATCH)),
            await write(lambda tx: token_store.drop_expired(tx, "app_tokens", now, BATCH)),
            await write(lambda tx: token_store.drop_expired(tx, "refresh_tokens", now, BATCH)),
            await write(lambda tx: app_store.drop_expired_secrets(tx, now, BATCH)),
            await write(lambda tx: resource_store.drop_expired_secrets(tx, now, BATCH)),
            await write(lambda tx: document_store.drop_expired(tx, now - STALE_IF_ERROR, BATCH)),
            await write(lambda tx: error_store.drop_expired(tx, now - ERRORS_RETAINED_FOR, BATCH)),
            await write(lambda tx: registration_store.drop_unused(tx, now - UNUSED_LIFETIME, BATCH)),
        ]
