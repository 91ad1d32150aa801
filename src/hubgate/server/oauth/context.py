"""The dependencies shared by all OAuth use cases."""

from functools import cached_property

from msgspec import Struct

from hubgate.server.clock import Clock
from hubgate.server.mail.outbox import Outbox
from hubgate.server.oauth.cimd.documents import Documents
from hubgate.server.oauth.explain.refusals import Refusals
from hubgate.server.oauth.keys.ring import KeyRing
from hubgate.server.oauth.tokens.idtoken import Signer
from hubgate.server.scopes import Scope
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database
from hubgate.server.throttle.rate_limiter import Limiter


class OAuth(Struct, frozen=True, dict=True):
    db: Database
    clock: Clock
    secret: ServerSecret
    keys: KeyRing
    limiter: Limiter
    outbox: Outbox
    # The issuer, exactly as in the `iss` of tokens.
    base_url: str
    cli_client_ids: tuple[str, ...]
    extra_scopes: tuple[Scope, ...]
    documents: Documents
    # Whether apps with a metadata document may use the device flow.
    cimd_device: bool = False
    # Whether apps may register themselves: off, on, or token.
    registration: str = "off"
    # How many of them the hub stores.
    max_self_registered: int = 10_000
    # Scopes of services that the operator has not configured: the hub's command-line tools do not request them.
    unavailable_scopes: frozenset[str] = frozenset()
    # Configured aliases of the only supported subject token type.
    subject_token_types: tuple[str, ...] = ()

    @cached_property
    def signer(self) -> Signer:
        return Signer(self.keys)

    @cached_property
    def refusals(self) -> Refusals:
        return Refusals(self.db, self.clock, self.base_url)
