"""The steps that grants share. A grant fills in its own steps and cannot leave out a shared one.

`issue` serves every grant under a user's consent (code, refresh token, device code). It locks the consent, lets the
grant find the authorization behind the presented code or token, checks servers, user and scopes, consumes a
single-use code, and creates the tokens.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.accounts.model import User, Visitor
from hubgate.server.accounts.tokens.text import TokenKind, read_token
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.claims import places_for
from hubgate.server.oauth.client_auth import ClientCredentials, Find
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.consent.store import LockedConsent
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import OAuthError, invalid_grant, invalid_request, invalid_scope, invalid_target
from hubgate.server.oauth.exchange.model import Subject
from hubgate.server.oauth.parameters import Parameters
from hubgate.server.oauth.registration.use import record_use
from hubgate.server.oauth.resource_indicators import NAME_ONE, NOT_AUTHORIZED, narrowed, requested_resources
from hubgate.server.oauth.resource_indicators import PARAMETER as RESOURCE
from hubgate.server.oauth.resource_names import needs_one, registration_of
from hubgate.server.oauth.resource_servers import store as resource_store
from hubgate.server.oauth.resource_servers.model import JWT, ResourceServer
from hubgate.server.oauth.tokens import access_jwt, issuance
from hubgate.server.oauth.tokens import store as token_store
from hubgate.server.oauth.tokens.groups import groups_for_id_token
from hubgate.server.oauth.tokens.issuance import SignInDetails, TokenDetails, scopes_left
from hubgate.server.scopes import IDENTITY_SCOPES
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import Statement

RESOURCE_TEXT = "the servers the token is for, among those authorized (RFC 8707); without it, all of them"


class GrantRequest(Struct, frozen=True):
    """A token request. `app` is authenticated; None if the request does not name a client. `subject` is present if the
    grant looks up more than the app.
    """

    oauth: OAuth
    parameters: Parameters
    app: App | None
    presented: ClientCredentials | None
    visitor: Visitor
    subject: Subject | None = None

    @property
    def client(self) -> App:
        if self.app is None:
            raise invalid_request("client_id is missing.")
        return self.app

    def key_of(self, parameter: str, kind: TokenKind, unknown: str) -> bytes:
        """The stored key of a code or token in the request; invalid_grant with the text `unknown` for other values."""
        read = read_token(self.parameters.require(parameter))
        if read is None or read[0] is not kind:
            raise invalid_grant(unknown)
        return read[1]


def _for_every_app(_: App) -> bool:
    return True


class Grant(Struct, frozen=True):
    """A grant type as registered."""

    type: str
    # For the documentation, without grant_type and client authentication.
    parameters: Mapping[str, str]
    answer: Callable[[GrantRequest], Awaitable[dict[str, Any]]]
    # Replaces the look-up of a client with a secret, to read what it needs in the same statement.
    find: Callable[[OAuth, Parameters], Find[Subject]] | None = None
    # Whether an app's settings allow it.
    is_enabled: Callable[[App], bool] = _for_every_app


class Authorization(Struct, frozen=True):
    """The user's authorization behind a code or token."""

    user: User
    consent_id: str
    scopes: str
    resources: str
    auth_time: int
    family: str
    nonce: str | None = None
    # The requested claims (oauth/claims.py).
    claims: str = ""
    # The refresh token whose grace period starts when the new access token is first used.
    supersedes: bytes | None = None


@dataclass(frozen=True)
class UserGrant(ABC):
    """A token request under a user's consent. Errors are returned, not raised, so that the transaction commits."""

    app: App
    key: bytes
    # The table of the code or token.
    table: ClassVar[str]
    # Fewer scopes than authorized; empty for all.
    requested_scopes: str = ""

    async def early_error(self, _db: Database, _now: int) -> OAuthError | None:
        """The error of a request that needs no transaction, if one statement can decide that."""
        return None

    @abstractmethod
    async def find(self, tx: Tx, now: int) -> Authorization | OAuthError: ...

    @abstractmethod
    def missing_consent_error(self) -> OAuthError:
        """The error if the authorization is found although no consent could be locked for it."""

    @abstractmethod
    async def consume(self, tx: Tx, found: Authorization, now: int) -> OAuthError | None:
        """Consume a single-use code; of concurrent requests only one gets None."""

    def new_refresh_token(self, found: Authorization, scopes: str, now: int) -> tuple[str | None, list[Statement]]:
        """The first refresh token, if the app gets them, and the statements that store it. It is valid for all
        authorized servers.
        """
        if not self.app.refresh_tokens:
            return None, []
        ids = self.app.client_id, found.user.id, found.consent_id
        text, statement = issuance.new_refresh_token(
            *ids, scopes, found.resources, found.auth_time, found.family, now, found.claims
        )
        return text, [statement]


class _Issued(Struct, frozen=True):
    authorization: Authorization
    access_token: str
    lifetime: int
    refresh_token: str | None
    # The registered server that the token is for.
    server: ResourceServer | None


async def issue(request: GrantRequest, grant: UserGrant) -> dict[str, Any]:
    oauth, app, now = request.oauth, grant.app, request.oauth.clock()
    requested = requested_resources(request.parameters.all(RESOURCE), oauth.base_url)
    if error := await grant.early_error(oauth.db, now):
        raise error

    async def unit(tx: Tx) -> _Issued | OAuthError:
        # The consent is locked first, as in every transaction.
        consented = await consent_store.lock_by_token(tx, grant.table, grant.key)
        found = await grant.find(tx, now)
        if isinstance(found, OAuthError):
            return found
        if consented is None:
            return grant.missing_consent_error()
        resources = narrowed(found.resources, requested)
        if resources is None:
            return invalid_target(NOT_AUTHORIZED)
        names = resources.split()
        if needs_one(names):
            return invalid_target(NAME_ONE)
        server = await _server(tx, names)
        if isinstance(server, OAuthError):
            return server
        if error := await grant.consume(tx, found, now):
            return error
        if found.user.disabled_at is not None:
            return invalid_grant("The user's account is disabled.")
        # The scopes of the refresh token, then those of the access token.
        everywhere = scopes_left(found.scopes, _consented_scopes(consented, found.resources.split()))
        allowed = consented.allowed(names)
        if server is not None:
            allowed &= IDENTITY_SCOPES | server.scope_names
        scopes = scopes_left(grant.requested_scopes or found.scopes, allowed)
        if everywhere is None or (scopes is None and not grant.requested_scopes):
            return invalid_grant("The user has revoked all of these permissions. Sign in again.")
        if scopes is None:
            return invalid_scope("The user has revoked these scopes. Request others, or leave out scope.", "scope")
        refresh_token, statements = grant.new_refresh_token(found, everywhere, now)
        is_jwt = server is not None and server.tokens == JWT
        lifetime = min(app.token_lifetime, access_jwt.LIFETIME_SECONDS) if is_jwt else app.token_lifetime
        details = TokenDetails(
            client_id=app.client_id,
            user_id=found.user.id,
            consent_id=found.consent_id,
            org_id=None,
            scopes=scopes,
            family=found.family,
            supersedes=found.supersedes,
            lifetime=lifetime,
            resources=resources,
            claims=places_for(app, found.claims),
        )
        access_token, token = issuance.new_access_token(details, now)
        await tx.exec_together([*statements, token_store.adding_token(token)])
        return _Issued(replace(found, scopes=scopes), access_token, lifetime, refresh_token, server)

    outcome = await oauth.db.write(unit)
    if isinstance(outcome, OAuthError):
        raise outcome
    await record_use(oauth, app)
    found = outcome.authorization
    groups = await groups_for_id_token(oauth, outcome.access_token, places_for(app, found.claims))
    return await issuance.token_response(
        oauth,
        found.user,
        app,
        await _token_text(oauth, app, outcome),
        found.scopes,
        outcome.lifetime,
        refresh_token=outcome.refresh_token,
        signed_in=SignInDetails(found.auth_time, found.nonce),
        groups=groups,
    )


async def _server(tx: Tx, names: Sequence[str]) -> ResourceServer | OAuthError | None:
    """The registered server that the token is for; None if there is none. An error if it was deleted."""
    registration = registration_of(names[0]) if names else ""
    if not registration:
        return None
    found = await resource_store.find(tx, registration)
    return found or invalid_grant("The server that the token is for was deleted. Sign in again.")


def _consented_scopes(consented: LockedConsent, names: Sequence[str]) -> frozenset[str]:
    """The scopes that a refresh token for these servers may have: those of each of its access tokens."""
    return frozenset().union(*(consented.allowed([name]) for name in names)) if names else consented.scopes


async def _token_text(oauth: OAuth, app: App, issued: _Issued) -> str:
    found, server = issued.authorization, issued.server
    if server is None or server.tokens != JWT:
        return issued.access_token
    return await access_jwt.sign(
        oauth, server, found.user, app.client_id, found.scopes, found.auth_time, issued.access_token, issued.lifetime
    )
