"""What is known when an exchange is judged, and the verdict."""

from dataclasses import dataclass

from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import Role
from hubgate.server.errors import HubError
from hubgate.server.oauth.apps.model import App


@dataclass(frozen=True)
class Member:
    user: User
    role: Role
    # When the last of membership, plan and privilege began.
    since: int


@dataclass(frozen=True)
class Facts:
    """As they stand in the database now. `member` is None where nobody in the organization has the address."""

    app: App
    plan: str
    member: Member | None
    # None where only the rest is to be judged.
    ip: str | None
    # As sent; None where nothing was.
    scope: str | None


@dataclass(frozen=True)
class Which:
    """Of an app's exchanged tokens; all of them where nothing is said. Times are ours, and both are included."""

    token_id: str | None = None
    user_id: str | None = None
    since: int | None = None
    until: int | None = None


@dataclass(frozen=True)
class Given:
    member: Member
    scopes: tuple[str, ...]


@dataclass(frozen=True)
class Refused:
    """`why` is for the organization's admins; the app is told no more than `error` says."""

    error: HubError
    why: str
