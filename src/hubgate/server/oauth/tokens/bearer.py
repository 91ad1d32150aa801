"""Authenticates an app's access token. The caller is the token's user, limited by the consent or, for an exchanged
token, to the organization.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

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
from hubgate.server.storage.database import Row, Tx

USE_RECORDING_INTERVAL = 5 * MINUTE


class TokenColumns(NamedTuple):
    """The last columns of `store.FIND_TOKEN`, in its order."""

    client_id: str
    consent_id: str | None
    org_id: str | None
    scopes: str
    supersedes: bytes | None
    created_at: int
    expires_at: int
    resources: str
    claims: str
    # The scopes of the consent.
    consented: str
    granted_org_id: str | None
    granted_scopes: str
    last_used_at: int | None


_TOKEN_COLUMN_COUNT = len(TokenColumns._fields)


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
        columns = TokenColumns(*rows[0][-_TOKEN_COLUMN_COUNT:])
        consent_id, used_at = columns.consent_id, columns.last_used_at
        is_due = used_at is None or now - used_at >= USE_RECORDING_INTERVAL
        if columns.supersedes is not None or (consent_id and is_due):
            self._record_use(key, consent_id, columns.supersedes, now)
        return caller_of_rows(rows, self.oauth.base_url)

    def _record_use(self, key: bytes, consent_id: str | None, supersedes: bytes | None, now: int) -> None:
        async def unit(tx: Tx) -> None:
            # The consent is locked first, as in every transaction: another lock order could deadlock.
            if consent_id is not None:
                await consent_store.record_use(tx, consent_id, now)
            if supersedes is not None:
                await store.supersede(tx, supersedes, now)
                await store.clear_supersedes(tx, key)

        self.background_writes.start(key, unit)


def caller_of_rows(rows: Sequence[Row], base_url: str) -> Caller:
    """The caller from the rows of `store.FIND_TOKEN`, one for each membership and granted organization."""
    person = person_of(rows)
    columns = [TokenColumns(*row[-_TOKEN_COLUMN_COUNT:]) for row in rows]
    token = columns[0]
    resources = tuple(token.resources.split())
    token_scopes = frozenset(parse_scopes(token.scopes))
    if token.org_id is not None:
        identity = Identity.exchanged(
            person.user.id, person.roles, client_id=token.client_id, scopes=token_scopes, organization=token.org_id
        )
    else:
        consented = (
            scopes_on_all(consent_store.read_resource_scopes(token.consented), resources)
            if resources
            else frozenset(parse_scopes(token.consented))
        )
        # Organizations exist only on this hub, so a token for other servers has no access to them.
        visible = [] if resources else columns
        identity = Identity.consented(
            person.user.id,
            person.roles,
            client_id=token.client_id,
            # Without those revoked from the consent since.
            scopes=token_scopes & consented,
            organizations={
                row.granted_org_id: frozenset(parse_scopes(row.granted_scopes))
                for row in visible
                if row.granted_org_id is not None
            },
        )
    names, claims = shown_servers(resources, base_url), tuple(token.claims.split())
    return Caller(identity, person, app=AppCredential(token.client_id, token.expires_at, resources, names, claims))
