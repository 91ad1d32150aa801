"""The facts for deciding about an exchange, and the verdict."""

from dataclasses import dataclass

from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import Role
from hubgate.server.errors import HubError
from hubgate.server.oauth.apps.model import App

# The plan of an organization that may exchange tokens.
REQUIRED_PLAN = "enterprise"


@dataclass(frozen=True)
class Member:
    user: User
    role: Role
    # When membership, plan and privilege began; the latest of the three.
    since: int


@dataclass(frozen=True)
class Facts:
    """The current facts from the database. `member` is None if nobody in the organization has the address."""

    app: App
    plan: str
    member: Member | None
    # None to skip the network check.
    ip: str | None
    # As sent; None if absent.
    scope: str | None


@dataclass(frozen=True)
class TokenFilter:
    """A filter for an app's exchanged tokens; the default selects all. Both times are inclusive."""

    token_id: str | None = None
    user_id: str | None = None
    since: int | None = None
    until: int | None = None


@dataclass(frozen=True)
class Granted:
    member: Member
    scopes: tuple[str, ...]


@dataclass(frozen=True)
class Refused:
    """A rejected exchange. `why` is for the organization's admins; the app sees only `error`."""

    error: HubError
    why: str
