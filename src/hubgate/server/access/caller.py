"""The caller of a request, with the rows that identified it. Valid for one request only."""

from typing import Any

import msgspec

from hubgate.server.access.identity import Identity
from hubgate.server.accounts.limits import network_of
from hubgate.server.accounts.model import Person, User, Visitor
from hubgate.server.accounts.sessions.model import Session
from hubgate.server.accounts.tokens.model import PersonalToken
from hubgate.server.audit.model import Actor
from hubgate.server.errors import Unauthorized
from hubgate.server.http.request import HubRequest

# User-Agent headers are stored up to this length.
LONGEST_USER_AGENT = 300


class AppCredential(msgspec.Struct, frozen=True):
    """The access token of an app."""

    client_id: str
    expires_at: int
    # The other servers that the token was requested for (RFC 8707); empty for this hub.
    resources: tuple[str, ...] = ()
    # Their names as shown at consent, for error messages.
    resource_names: tuple[str, ...] = ()
    # The claims that the app requested (oauth/claims.py).
    claims: tuple[str, ...] = ()

    @property
    def is_for_this_hub(self) -> bool:
        return not self.resources


class Caller(msgspec.Struct, frozen=True):
    """The caller of a request. `person` is None for an anonymous visitor; at most one of the credentials is set."""

    identity: Identity
    person: Person | None = None
    session: Session | None = None
    token: PersonalToken | None = None
    app: AppCredential | None = None

    @classmethod
    def with_session(cls, person: Person, session: Session) -> "Caller":
        identity = Identity.session(person.user.id, person.roles, operator=bool(person.user.operator))
        return cls(identity, person, session=session)

    @classmethod
    def with_token(cls, person: Person, token: PersonalToken) -> "Caller":
        if not token.is_fine_grained:
            return cls(Identity.personal(person.user.id, person.roles, role=token.role), person, token=token)
        identity = Identity.fine_grained(
            person.user.id,
            person.roles,
            token_id=token.id,
            scopes=token.everywhere,
            owners={place.target_id: frozenset(place.scope_names) for place in token.limits if not place.is_repo},
            repos={place.target_id: frozenset(place.scope_names) for place in token.limits if place.is_repo},
        )
        return cls(identity, person, token=token)

    @property
    def signed_in_person(self) -> Person:
        """The signed-in person; Unauthorized for an anonymous visitor."""
        if self.person is None:
            raise Unauthorized("Sign in first.")
        return self.person

    @property
    def user(self) -> User:
        return self.signed_in_person.user


ANONYMOUS = Caller(Identity.anonymous())


def caller_of(request: HubRequest) -> Caller:
    """The caller that the guard found; ANONYMOUS on routes without authentication."""
    return request.caller or ANONYMOUS


def share_key_of(request: HubRequest) -> str:
    """The key for fair sharing of limited resources: the user id, or the client address. IPv6 addresses are grouped by
    network, because one customer has billions of them.
    """
    ip = request.client_ip
    return caller_of(request).identity.user_id or (network_of(ip) if ":" in ip else ip)


def visitor_of(request: HubRequest) -> Visitor:
    return Visitor(request.client_ip, request.headers.get("user-agent", "")[:LONGEST_USER_AGENT])


def actor_of(request: HubRequest) -> Actor:
    """The caller as an actor for the audit log."""
    caller, visitor = caller_of(request), visitor_of(request)
    return Actor(
        name=caller.user.name,
        user_id=caller.user.id,
        ip=visitor.ip,
        user_agent=visitor.user_agent,
        token=_token_data(caller.token),
        oauth={"clientId": caller.app.client_id} if caller.app else None,
        credentials_version=caller.user.credentials_version,
    )


def _token_data(token: PersonalToken | None) -> dict[str, Any] | None:
    if token is None:
        return None
    return {
        "type": "access_token",
        "id": token.id,
        "role": token.role.value,
        "last4": token.last_four,
    }
