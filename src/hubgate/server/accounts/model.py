"""Users, organizations and memberships: frozen values, read for each request and never cached.

Values that every request creates are Structs: creating a frozen dataclass takes thirty times as long.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import fields

from hubgate.server.accounts.roles import ROLES, Role
from hubgate.server.storage.database import Row

PLANS = ("free", "team", "enterprise")


class User(msgspec.Struct, frozen=True):
    """A user. The fields are in the order of `store.PERSON`."""

    id: str
    name: str
    fullname: str
    email: str
    email_verified_at: int | None
    website: str
    operator: int
    can_pay: int
    created_at: int
    disabled_at: int | None
    credentials_version: int = 0

    @property
    def display_name(self) -> str:
        return self.fullname or self.name


class Organization(msgspec.Struct, frozen=True):
    """An organization. The fields are in the order of `store.PERSON`."""

    id: str
    name: str
    fullname: str
    website: str
    plan: str
    can_pay: int
    created_at: int

    @property
    def display_name(self) -> str:
        return self.fullname or self.name


class Membership(msgspec.Struct, frozen=True):
    organization: Organization
    role: Role


class Person(msgspec.Struct, frozen=True):
    """A user with all memberships, read at the start of the request."""

    user: User
    memberships: Sequence[Membership]
    # By organization id.
    roles: Mapping[str, Role]


class Visitor(msgspec.Struct, frozen=True):
    """The client of a request, for session lists and warning mails."""

    ip: str
    user_agent: str


_USER_END = 11
_ORGANIZATION_END = _USER_END + 7


def person_of(rows: Sequence[Row]) -> Person:
    """Build a person from rows that start with `store.PERSON`: each repeats the user, with at most one membership."""
    memberships, roles = [], {}
    for row in rows:
        if row[_USER_END] is not None:
            organization = Organization(*row[_USER_END:_ORGANIZATION_END])
            role = roles[organization.id] = ROLES[row[_ORGANIZATION_END]]
            memberships.append(Membership(organization, role))
    # Sorted here, because database engines sort dashes differently.
    memberships.sort(key=_by_name)
    return Person(User(*rows[0][:_USER_END]), memberships, roles)


def _by_name(membership: Membership) -> str:
    return membership.organization.name.lower()


class Owner(msgspec.Struct, frozen=True):
    """The owner of an app, a resource server or a webhook: either a user or an organization."""

    user_id: str | None = None
    org_id: str | None = None


class RevokedCounts(msgspec.Struct, frozen=True):
    """Counts of revoked items, in the order of the summary. Authorization codes are revoked too, but not counted."""

    sessions: int = 0
    personal_tokens: int = 0
    app_tokens: int = 0
    # Token families: an app has one refresh token at a time.
    refresh_tokens: int = 0
    connected_apps: int = 0
    apps: int = 0
    resource_servers: int = 0
    webhooks: int = 0
    invitations: int = 0
    memberships: int = 0
    # From names of the account to repos of other owners.
    redirects: int = 0

    def __add__(self, other: "RevokedCounts") -> "RevokedCounts":
        return RevokedCounts(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def summary(self, *, other_sessions: bool = False) -> str:
        """A text such as "2 sessions, 1 app token"; empty if nothing was revoked. With `other_sessions`, the current
        session continues, and the text says "2 other sessions".
        """
        counted = {
            "other session" if other_sessions else "session": self.sessions,
            "personal token": self.personal_tokens,
            "app token": self.app_tokens,
            "refresh token": self.refresh_tokens,
            "connected app": self.connected_apps,
            "registered app": self.apps,
            "resource server": self.resource_servers,
            "webhook": self.webhooks,
            "invitation": self.invitations,
            "membership": self.memberships,
            "redirect": self.redirects,
        }
        return ", ".join(f"{count:,} {noun}{'' if count == 1 else 's'}" for noun, count in counted.items() if count)
