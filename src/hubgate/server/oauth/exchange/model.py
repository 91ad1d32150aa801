"""The facts for deciding about an exchange, and the verdict."""

from msgspec import Struct

from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import Role
from hubgate.server.errors import HubError
from hubgate.server.oauth.apps.model import App

# The plan of an organization that may exchange tokens.
REQUIRED_PLAN = "enterprise"


class Member(Struct, frozen=True):
    user: User
    role: Role
    # When membership, plan and privilege began; the latest of the three.
    since: int


class Subject(Struct, frozen=True):
    """An app with the member that an exchange names, as one statement read them. `member` is None if nobody in the
    organization has the address.
    """

    app: App
    plan: str
    member: Member | None
    # A text that differs after a change of the app's settings or the membership (`store.STATE`).
    state: str | None
    # The stored key of the secret that the app presented; empty in a dry run.
    secret: bytes = b""


class Facts(Struct, frozen=True):
    """The facts that decide an exchange."""

    subject: Subject
    # None to skip the network check.
    ip: str | None
    # As sent; None if absent.
    scope: str | None


class TokenFilter(Struct, frozen=True):
    """A filter for an app's exchanged tokens; the default selects all. Both times are inclusive."""

    token_id: str | None = None
    user_id: str | None = None
    since: int | None = None
    until: int | None = None


class Granted(Struct, frozen=True):
    member: Member
    scopes: tuple[str, ...]


class Refused(Struct, frozen=True):
    """A rejected exchange. `why` is for the organization's admins; the app sees only `error`."""

    error: HubError
    why: str
