"""Authenticates an app's access token. The caller is the token's user, limited by the consent or, for an exchanged
token, to the organization.
"""

from functools import cached_property

from msgspec import Struct

from hubgate.server.access.caller import AppCredential, Caller
from hubgate.server.access.identity import Identity
from hubgate.server.accounts.model import person_of
from hubgate.server.clock import MINUTE
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.consent.model import scopes_on_all
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.resource_names import shown_servers
from hubgate.server.oauth.tokens import store
from hubgate.server.scopes import parse_scopes
from hubgate.server.storage.background_writes import BackgroundWrites
from hubgate.server.storage.database import Tx

USE_RECORDING_INTERVAL = 5 * MINUTE
_TOKEN_COLUMN_COUNT = 12


class BearerTokens(Struct, frozen=True, dict=True):
    oauth: OAuth

    @cached_property
    def background_writes(self) -> BackgroundWrites:
        return BackgroundWrites(self.oauth.db)

    async def find(self, key: bytes) -> Caller | None:
        now = self.oauth.clock()
        rows = await store.find_token(self.oauth.db, key, now)
        if not rows:
            return None
        person = person_of(rows)
        columns = tuple(rows[0])[-_TOKEN_COLUMN_COUNT:]
        client_id, consent_id, org_id, scopes, supersedes, _, expires_at, resource_text, consented, _, _, used_at = (
            columns
        )
        resources = tuple(resource_text.split())
        if org_id is not None:
            token_scopes = frozenset(parse_scopes(scopes))
            identity = Identity.exchanged(
                person.user.id, person.roles, client_id=client_id, scopes=token_scopes, organization=org_id
            )
        else:
            # The token's scopes, without those revoked from the consent since.
            allowed = (
                scopes_on_all(consent_store.read_resource_scopes(consented), resources)
                if resources
                else frozenset(parse_scopes(consented))
            )
            token_scopes = frozenset(parse_scopes(scopes)) & allowed
            # Organizations exist only on this hub, so a token for other servers has no access to them.
            visible = [row for row in map(tuple, rows) if row[-3] is not None and not resources]
            granted = {row[-3]: frozenset(parse_scopes(row[-2])) for row in visible}
            identity = Identity.consented(
                person.user.id, person.roles, client_id=client_id, scopes=token_scopes, organizations=granted
            )
        if supersedes is not None or (consent_id and (used_at is None or now - used_at >= USE_RECORDING_INTERVAL)):
            self._record_use(key, consent_id, supersedes, now)
        names = shown_servers(resources, self.oauth.base_url)
        return Caller(identity, person, app=AppCredential(client_id, expires_at, resources, names))

    def _record_use(self, key: bytes, consent_id: str | None, supersedes: bytes | None, now: int) -> None:
        async def unit(tx: Tx) -> None:
            # The consent is locked first, as in every transaction: another lock order could deadlock.
            if consent_id is not None:
                await consent_store.record_use(tx, consent_id, now)
            if supersedes is not None:
                await store.supersede(tx, supersedes, now)
                await store.clear_supersedes(tx, key)

        self.background_writes.start(key, unit)
