"""The identity behind a request, with the limits of its credential.

An identity is built for each request from rows read for that request and is never stored: a member who was removed or
demoted loses the permissions of live tokens at the next request (attack O44).
"""

from collections.abc import Collection, Mapping
from enum import Enum

import msgspec

from hubgate.server.accounts.roles import Role, TokenRole


class CredentialKind(Enum):
    ANONYMOUS = "anonymous"
    SESSION = "session"
    PERSONAL = "personal token"
    FINE_GRAINED = "fine-grained personal token"
    CONSENTED = "token of a consented app"
    EXCHANGED = "exchanged token"


NO_MEMBERSHIPS: Mapping[str, Role] = {}
NO_SCOPES: frozenset[str] = frozenset()
NO_GRANTS: Mapping[str, frozenset[str]] = {}
# Client ids of apps never begin with this: they are ids or https URLs.
PERSONAL_CLIENT = "token:"


class Identity(msgspec.Struct, frozen=True):
    """The user behind a request and the limits of the credential.

    Create it with the class methods below: each takes exactly the limits of its kind of credential.

    Only a session has the operator flag, so an operator's tokens never carry it.
    """

    kind: CredentialKind
    user_id: str | None = None
    memberships: Mapping[str, Role] = msgspec.field(default_factory=lambda: NO_MEMBERSHIPS)
    token_role: TokenRole | None = None
    # For a fine-grained token, the scopes that apply everywhere.
    scopes: frozenset[str] = frozenset()
    # Scopes by organization; for a fine-grained token, by organization and for the user's own account.
    granted: Mapping[str, frozenset[str]] = msgspec.field(default_factory=lambda: NO_GRANTS)
    # Scopes by repo, of a fine-grained token.
    repos: Mapping[str, frozenset[str]] = msgspec.field(default_factory=lambda: NO_GRANTS)
    # The organization that an exchanged token is limited to; None for other credentials.
    fence: str | None = None
    # The app, or "token:ID" for a fine-grained token: what it creates stays within its permissions.
    client_id: str | None = None
    operator: bool = False

    @classmethod
    def anonymous(cls) -> "Identity":
        return ANONYMOUS

    @classmethod
    def session(cls, user_id: str, memberships: Mapping[str, Role], *, operator: bool = False) -> "Identity":
        """A user signed in on the hub's pages."""
        return cls(CredentialKind.SESSION, user_id, memberships, operator=operator)

    @classmethod
    def personal(cls, user_id: str, memberships: Mapping[str, Role], *, role: TokenRole) -> "Identity":
        """A token that the user created for scripts and git."""
        return cls(CredentialKind.PERSONAL, user_id, memberships, token_role=role)

    @classmethod
    def fine_grained(
        cls,
        user_id: str,
        memberships: Mapping[str, Role],
        *,
        token_id: str,
        scopes: Collection[str],
        owners: Mapping[str, frozenset[str]],
        repos: Mapping[str, frozenset[str]],
    ) -> "Identity":
        """A token that the user created with limits: `scopes` apply everywhere, `owners` maps the ids of the user and
        of organizations to the scopes there, `repos` the ids of repos.
        """
        return cls(
            CredentialKind.FINE_GRAINED,
            user_id,
            memberships,
            scopes=frozenset(scopes),
            granted=owners,
            repos=repos,
            client_id=f"{PERSONAL_CLIENT}{token_id}",
        )

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
        """A token of an app that the user consented to; `organizations` maps the id of each granted organization to the
        scopes granted there.
        """
        return cls(
            CredentialKind.CONSENTED,
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
        """A token that an organization's app obtained for a member by token exchange, without consent. `organization`
        is its fence.
        """
        return cls(
            CredentialKind.EXCHANGED,
            user_id,
            memberships,
            scopes=frozenset(scopes),
            fence=organization,
            client_id=client_id,
        )

    @property
    def is_scoped(self) -> bool:
        """Whether scopes apply: an app acts for the user, or the token is fine-grained."""
        return self.client_id is not None

    @property
    def lapsed(self) -> bool:
        """Whether the user of an exchanged token has left the organization: the token then allows only public reads."""
        return self.fence is not None and self.fence not in self.memberships

    def role_in(self, organization_id: str) -> Role | None:
        """The user's role in an organization; None outside the fence, consent or limits of this credential."""
        if self.kind is CredentialKind.EXCHANGED and organization_id != self.fence:
            return None
        if self.kind in _GRANTED_KINDS and organization_id not in self.granted:
            return None
        return self.memberships.get(organization_id)

    def scopes_in(self, organization_id: str) -> frozenset[str]:
        """The scopes that apply in an organization; for a consent, only the scopes granted there (attack O65)."""
        if self.kind is CredentialKind.CONSENTED:
            return self.scopes & self.granted.get(organization_id, NO_SCOPES)
        return self.scopes | self.granted.get(organization_id, NO_SCOPES)

    def scopes_of_user(self, user_id: str) -> frozenset[str]:
        """The scopes that apply in a user's personal namespace."""
        return self.scopes | self.granted.get(user_id, NO_SCOPES)

    def owns(self, user_id: str) -> bool:
        """Whether the credential reaches that user's personal namespace, which is outside every fence (attack O43)."""
        if self.kind is CredentialKind.FINE_GRAINED and user_id not in self.granted:
            return False
        return self.user_id == user_id and self.kind is not CredentialKind.EXCHANGED


_GRANTED_KINDS = (CredentialKind.CONSENTED, CredentialKind.FINE_GRAINED)
ANONYMOUS = Identity(CredentialKind.ANONYMOUS)
