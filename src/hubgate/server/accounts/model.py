"""Users, organizations and memberships: frozen values, read for each request and never cached.

Values that every request creates are Structs: creating a frozen dataclass takes thirty times as long.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

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
    def shown_name(self) -> str:
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
    def shown_name(self) -> str:
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


@dataclass(frozen=True, slots=True)
class Visitor:
    """The client of a request, for session lists and warning mails."""

    ip: str
    user_agent: str


_USER_END = 11
_ORGANIZATION_END = _USER_END + 7


def person_of(rows: Sequence[Row]) -> Person:
    """Build a person from rows that start with `store.PERSON`: each repeats the user, with at most one membership."""
    first = tuple(rows[0])
    memberships, roles = [], {}
    for row in rows:
        values = tuple(row)
        if values[_USER_END] is not None:
            role = roles[values[_USER_END]] = ROLES[values[_ORGANIZATION_END]]
            memberships.append(Membership(Organization(*values[_USER_END:_ORGANIZATION_END]), role))
    # Sorted here, because database engines sort dashes differently.
    memberships.sort(key=_by_name)
    return Person(User(*first[:_USER_END]), memberships, roles)


def _by_name(membership: Membership) -> str:
    return membership.organization.name.lower()


@dataclass(frozen=True)
class Owner:
    """The owner of an app or a webhook: either a user or an organization."""

    user_id: str | None = None
    org_id: str | None = None
