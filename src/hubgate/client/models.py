"""What the hub answers with, typed. Members that are not named here are passed over: a newer hub may say more."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

# The hub says null there, and leaves out none of these.
_NULL = {"null": True}


@dataclass(frozen=True)
class Watched:
    type: str
    name: str


@dataclass(frozen=True)
class Webhook:
    """`disabled` is "suspended-after-failure" where the hub itself has stopped it; `url` is None for one that is
    pulled. The hub repeats a `secret` only to the call that set it; `has_secret` always says whether there is one.
    """

    id: str
    url: str | None
    watched: list[Watched]
    domains: list[str]
    secret: str | None = field(default=None, repr=False)
    status: str = "enabled"
    disabled: bool | str = False
    pull: bool = False
    ordered: bool = False
    public_key: str | None = None
    created_at: datetime | None = None
    last_trigger_at: datetime | None = None
    has_secret: bool = False


@dataclass(frozen=True)
class EventRef:
    id: str
    action: str
    scope: str


@dataclass(frozen=True)
class RepoRef:
    type: str
    name: str


@dataclass(frozen=True)
class Delivery:
    """One line of a webhook's activity. `status` is what the receiver answered, if it did."""

    id: str
    event: EventRef
    repo: RepoRef
    state: str
    at: datetime
    status: int | None = field(default=None, metadata=_NULL)
    attempts: int = 0
    reason: str | None = None
    next_attempt_at: datetime | None = field(default=None, metadata=_NULL)
    replay_of: str | None = field(default=None, metadata=_NULL)


@dataclass(frozen=True)
class Sent:
    """Of a test or a replay: the new delivery, and what the receiver answered within twenty seconds."""

    id: str
    status: int | None = field(default=None, metadata=_NULL)


@dataclass(frozen=True)
class OrganizationRef:
    """An organization as whoami lists it, with one's own role there."""

    id: str
    name: str
    fullname: str = ""
    role_in_org: str | None = None
    plan: str | None = None


@dataclass(frozen=True)
class WhoAmI:
    """What the token may not see is None."""

    id: str
    name: str
    type: str
    orgs: list[OrganizationRef]
    auth: dict[str, Any]
    fullname: str | None = None
    email: str | None = None
    email_verified: bool | None = None
    can_pay: bool | None = None


@dataclass(frozen=True)
class AccessToken:
    """A personal token; its secret was shown once, on the hub's pages."""

    id: str
    name: str
    role: str
    last_four: str
    created_at: datetime
    last_used_at: datetime | None = None


@dataclass(frozen=True)
class Organization:
    name: str
    fullname: str
    plan: str | None = None
    num_users: int = 0
    num_models: int = 0
    num_datasets: int = 0
    num_spaces: int = 0


@dataclass(frozen=True)
class Member:
    """`role` and `verified_email` are for admins."""

    user: str
    fullname: str = ""
    role: str | None = None
    verified_email: str | None = None


@dataclass(frozen=True)
class Repo:
    id: str
    type: str
    private: bool = False
    gated: bool | str = False
    sha: str | None = None
    tags: list[str] = field(default_factory=list)
    created_at: datetime | None = None
    last_modified: datetime | None = None


@dataclass(frozen=True)
class RepoMade:
    url: str
    name: str


@dataclass(frozen=True)
class LargeFile:
    oid: str
    size: int


@dataclass(frozen=True)
class Entry:
    """A file or directory of a repo. `lfs` is there for large files."""

    type: str
    path: str
    oid: str
    size: int = 0
    lfs: LargeFile | None = None


@dataclass(frozen=True)
class Commit:
    commit_oid: str
    commit_url: str
    pull_request_url: str | None = None


@dataclass(frozen=True)
class Uploaded:
    """`commit` is None where nothing had changed. Paths are those in the repo."""

    commit: Commit | None
    sent: list[str]
    unchanged: list[str]
    ignored: list[str]


@dataclass(frozen=True)
class AuditAuthor:
    user: str | None = None
    type: str = "user"


@dataclass(frozen=True)
class AuditEntry:
    id: str = field(metadata={"wire": "_id"})
    created_at: datetime
    type: str
    message: str
    author: AuditAuthor
    ip: str | None = None
    user_agent: str | None = None
    data: dict[str, Any] | None = None
    oauth: dict[str, Any] | None = None
    token: dict[str, Any] | None = None


@dataclass(frozen=True)
class Token:
    """What the token endpoint gave."""

    access_token: str = field(repr=False, metadata={"wire": "access_token"})
    token_type: str = field(metadata={"wire": "token_type"})
    expires_in: int = field(default=0, metadata={"wire": "expires_in"})
    scope: str = ""
    refresh_token: str = field(default="", repr=False, metadata={"wire": "refresh_token"})
    id_token: str | None = field(default=None, repr=False, metadata={"wire": "id_token"})
    issued_token_type: str | None = field(default=None, metadata={"wire": "issued_token_type"})


@dataclass(frozen=True)
class DeviceCode:
    """Show `user_code` and `verification_uri`; keep `device_code`."""

    device_code: str = field(repr=False, metadata={"wire": "device_code"})
    user_code: str = field(metadata={"wire": "user_code"})
    verification_uri: str = field(metadata={"wire": "verification_uri"})
    verification_uri_complete: str | None = field(default=None, metadata={"wire": "verification_uri_complete"})
    expires_in: int = field(default=900, metadata={"wire": "expires_in"})
    interval: int = 5
