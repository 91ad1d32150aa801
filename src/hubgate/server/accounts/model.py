"""People and organizations as the rest of the hub sees them: frozen, read for one request and never kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hubgate.server.accounts.roles import Role
from hubgate.server.storage.database import Row

PLANS = ("free", "team", "enterprise")


@dataclass(frozen=True, slots=True)
class User:
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

    @property
    def shown_name(self) -> str:
        return self.fullname or self.name


@dataclass(frozen=True, slots=True)
class Organization:
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


@dataclass(frozen=True, slots=True)
class Membership:
    organization: Organization
    role: Role


@dataclass(frozen=True)
class Person:
    """A user with all memberships, as they were when the request came in."""

    user: User
    memberships: Sequence[Membership]

    @cached_property
    def roles(self) -> Mapping[str, Role]:
        """By organization id."""
        return {membership.organization.id: membership.role for membership in self.memberships}


@dataclass(frozen=True, slots=True)
class Visitor:
    """Where a request comes from, for the lists of sessions and for mails that warn."""

    ip: str
    user_agent: str


_USER = 10
_ORGANIZATION = _USER + 7


def person_of(rows: Sequence[Row]) -> Person:
    """From rows that begin with `store.PERSON`: the user again and again, each time with one membership or none."""
    first = tuple(rows[0])
    memberships = []
    for row in rows:
        values = tuple(row)
        if values[_USER] is not None:
            role = Role(values[_ORGANIZATION])
            memberships.append(Membership(Organization(*values[_USER:_ORGANIZATION]), role))
    return Person(User(*first[:_USER]), memberships)
