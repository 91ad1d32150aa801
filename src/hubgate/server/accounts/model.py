"""People and organizations as the rest of the hub sees them: frozen, read for one request and never kept.

Structs rather than dataclasses where every request makes some: a frozen dataclass costs thirty times as much to make.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from hubgate.server.accounts.roles import ROLES, Role
from hubgate.server.storage.database import Row

PLANS = ("free", "team", "enterprise")


class User(msgspec.Struct, frozen=True):
    """The order of the fields is that of `store.PERSON`."""

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
    """The order of the fields is that of `store.PERSON`."""

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
    """A user with all memberships, as they were when the request came in."""

    user: User
    memberships: Sequence[Membership]
    # By organization id.
    roles: Mapping[str, Role]


@dataclass(frozen=True, slots=True)
class Visitor:
    """Where a request comes from, for the lists of sessions and for mails that warn."""

    ip: str
    user_agent: str


_USER = 11
_ORGANIZATION = _USER + 7


def person_of(rows: Sequence[Row]) -> Person:
    """From rows that begin with `store.PERSON`: the user again and again, each time with one membership or none."""
    first = tuple(rows[0])
    memberships, roles = [], {}
    for row in rows:
        values = tuple(row)
        if values[_USER] is not None:
            role = roles[values[_USER]] = ROLES[values[_ORGANIZATION]]
            memberships.append(Membership(Organization(*values[_USER:_ORGANIZATION]), role))
    # Here, because engines have opinions of their own on where a dash belongs.
    memberships.sort(key=_by_name)
    return Person(User(*first[:_USER]), memberships, roles)


def _by_name(membership: Membership) -> str:
    return membership.organization.name.lower()


@dataclass(frozen=True)
class Owner:
    """Of apps or webhooks: a user or an organization, one of the two."""

    user_id: str | None = None
    org_id: str | None = None
