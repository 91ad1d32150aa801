"""Who is asking, and within what limits.

The caller builds an identity for each request from rows read for that request and never keeps it: a member who was
removed or demoted loses the rights of live tokens at the next request (attack O44).
"""

from collections.abc import Collection, Mapping
from enum import Enum

import msgspec

from hubgate.server.accounts.roles import Role, TokenRole


class Kind(Enum):
    ANONYMOUS = "anonymous"
    SESSION = "session"
    PERSONAL = "personal token"
    CONSENTED = "token of a consented app"
    EXCHANGED = "exchanged token"


NO_MEMBERSHIPS: Mapping[str, Role] = {}
NO_GRANTS: Mapping[str, frozenset[str]] = {}


class Identity(msgspec.Struct, frozen=True):
    """Made only by the constructors below: each takes exactly the limits its kind of credential has.

    The operator flag belongs to a session alone, so an operator's tokens cannot carry it.
    """

    kind: Kind
    user_id: str | None = None
    memberships: Mapping[str, Role] = msgspec.field(default_factory=lambda: NO_MEMBERSHIPS)
    token_role: TokenRole | None = None
    scopes: frozenset[str] = frozenset()
    granted: Mapping[str, frozenset[str]] = msgspec.field(default_factory=lambda: NO_GRANTS)
    fence: str | None = None
    client_id: str | None = None
    operator: bool = False

    @classmethod
    def anonymous(cls) -> "Identity":
        return ANONYMOUS

    @classmethod
    def session(cls, user_id: str, memberships: Mapping[str, Role], *, operator: bool = False) -> "Identity":
        """The user at the hub's own pages."""
        return cls(Kind.SESSION, user_id, memberships, operator=operator)

    @classmethod
    def personal(cls, user_id: str, memberships: Mapping[str, Role], *, role: TokenRole) -> "Identity":
        """A token the user made for scripts and git."""
        return cls(Kind.PERSONAL, user_id, memberships, token_role=role)

    @classmethod
    def consented(
        cls,
        user_id: str,
        memberships: Mapping[str, Role],
        *,
        client_id: str,
        scopes: Collection[str],
        organizations: Mapping[str, frozenset[str]],
    ) -> "Identity":
        """A token the user allowed an app to have; `organizations` are the ids of those the user granted, each with the
        scopes it was granted with.
        """
        return cls(
            Kind.CONSENTED,
            user_id,
            memberships,
            scopes=frozenset(scopes),
            granted=organizations,
            client_id=client_id,
        )

    @classmethod
    def exchanged(
        cls,
        user_id: str,
        memberships: Mapping[str, Role],
        *,
        client_id: str,
        scopes: Collection[str],
        organization: str,
    ) -> "Identity":
        """A token an organization's app took for a member without asking; `organization` is its fence."""
        return cls(
            Kind.EXCHANGED,
            user_id,
            memberships,
            scopes=frozenset(scopes),
            fence=organization,
            client_id=client_id,
        )

    @property
    def is_app(self) -> bool:
        """Whether an app is asking for the user, so that scopes limit it."""
        return self.client_id is not None

    @property
    def lapsed(self) -> bool:
        """An exchanged token whose user has left the organization: good for what anyone may read, no more."""
        return self.fence is not None and self.fence not in self.memberships

    def role_in(self, organization_id: str) -> Role | None:
        """The user's role there as far as this credential reaches: none beyond its fence or its consent."""
        if self.kind is Kind.EXCHANGED and organization_id != self.fence:
            return None
        if self.kind is Kind.CONSENTED and organization_id not in self.granted:
            return None
        return self.memberships.get(organization_id)

    def scopes_in(self, organization_id: str) -> frozenset[str]:
        """The scopes that apply in an organization: of a consent, only those it was granted with (attack O65)."""
        if self.kind is Kind.CONSENTED:
            return self.scopes & self.granted.get(organization_id, frozenset())
        return self.scopes

    def owns(self, user_id: str) -> bool:
        """Whether that user's personal things are in reach. They lie outside every fence (attack O43)."""
        return self.user_id == user_id and self.kind is not Kind.EXCHANGED


ANONYMOUS = Identity(Kind.ANONYMOUS)
