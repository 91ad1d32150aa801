"""The hub's responses as dataclasses. Unknown members are ignored: a newer hub may send more."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, TypedDict

# The hub always sends these members, as null if there is no value.
_NULL = {"null": True}


@dataclass(frozen=True)
class Watched:
    type: str
    name: str


@dataclass(frozen=True)
class Webhook:
    """A webhook. `url` is None if its events are pulled; `disabled` is "suspended-after-failure" if it was suspended.

    The hub returns `secret` only to the call that set it, and `has_secret` to every call.
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
class TunnelLink:
    """A temporary link to a receiver."""

    id: str
    url: str
    created_at: datetime
    expires_at: datetime


class WebhookOptions(TypedDict, total=False):
    """Optional settings of a webhook. Options that are None or absent are not sent.

    The annotations contain the help texts of the command line.
    """

    ordered: Annotated[bool | None, "later deliveries of a repo wait up to 5 minutes for the retry of a failed one"]


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
    """A delivery in a webhook's activity. `status` is the receiver's HTTP status, or None without a response."""

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
class SentDelivery:
    """A test or replay: the id of the new delivery, and the receiver's status if it responded within twenty seconds."""

    id: str
    status: int | None = field(default=None, metadata=_NULL)


@dataclass(frozen=True)
class Replay:
    """A replay of many deliveries, of which `done` have been sent. `state` is running, done or cancelled."""

    id: str
    total: int
    done: int
    state: str


@dataclass(frozen=True)
class WebhookEvent:
    """An event of a webhook: a delivery with its number. `headers` and `body` are those of the request; both are None
    if the event was skipped, for the reason in `skipped`.
    """

    cursor: int
    id: str
    headers: dict[str, str] | None = field(default=None, repr=False)
    body: str | None = field(default=None, repr=False)
    skipped: str | None = None


@dataclass(frozen=True)
class EventPage:
    """Events in order, and the cursor to continue after."""

    events: list[WebhookEvent]
    cursor: int


@dataclass(frozen=True)
class OrganizationRef:
    """An organization of the signed-in user, with the user's role in it."""

    id: str
    name: str
    fullname: str = ""
    role_in_org: str | None = None
    plan: str | None = None


@dataclass(frozen=True)
class WhoAmI:
    """The signed-in user. Fields that the token may not read are None."""

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
    """A personal token, without its secret, which the hub's pages show only once."""

    id: str
    name: str
    role: str
    last_four: str
    created_at: datetime
    last_used_at: datetime | None = None
    last_used_ip: str | None = None
    # None if the token never expires.
    expires_at: datetime | None = None
    # The limits of a fine-grained token: `scoped`, `global` and `canReadGatedRepos`, as in `WhoAmI.auth`.
    fine_grained: dict[str, Any] | None = None


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
    """A member of an organization. Only admins see `role` and `verified_email`."""

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
class CreatedRepo:
    url: str
    name: str


@dataclass(frozen=True)
class SpaceRuntime:
    """The state of a Space. `gc_timeout` is the number of seconds without a request after which it sleeps."""

    stage: str
    gc_timeout: int | None = None
    error_message: str | None = None
    sha: str | None = None


@dataclass(frozen=True)
class SpaceSecret:
    key: str
    description: str | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True)
class LogLine:
    """A line of a Space's log. `n` is its number, from which reading can continue."""

    data: str
    timestamp: datetime
    n: int


@dataclass(frozen=True)
class LargeFile:
    oid: str
    size: int


@dataclass(frozen=True)
class Entry:
    """A file or directory in a repo. `lfs` is set for large files."""

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
class UploadResult:
    """The result of an upload. `commit` is None if nothing had changed. Paths are paths in the repo."""

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
    """A response of the token endpoint."""

    access_token: str = field(repr=False, metadata={"wire": "access_token"})
    token_type: str = field(metadata={"wire": "token_type"})
    expires_in: int = field(default=0, metadata={"wire": "expires_in"})
    scope: str = ""
    refresh_token: str = field(default="", repr=False, metadata={"wire": "refresh_token"})
    id_token: str | None = field(default=None, repr=False, metadata={"wire": "id_token"})
    issued_token_type: str | None = field(default=None, metadata={"wire": "issued_token_type"})


@dataclass(frozen=True)
class DeviceCode:
    """A device code. Show `user_code` and `verification_uri` to the user; do not show `device_code`."""

    device_code: str = field(repr=False, metadata={"wire": "device_code"})
    user_code: str = field(metadata={"wire": "user_code"})
    verification_uri: str = field(metadata={"wire": "verification_uri"})
    verification_uri_complete: str | None = field(default=None, metadata={"wire": "verification_uri_complete"})
    expires_in: int = field(default=900, metadata={"wire": "expires_in"})
    interval: int = 5
