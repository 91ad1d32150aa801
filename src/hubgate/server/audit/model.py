"""Who did something, and the entry that tells of it."""

import json
from dataclasses import dataclass
from enum import Enum, unique
from typing import Any


@unique
class Kind(Enum):
    """The types of entry. Existing readers of such logs know the spelling `subject.verb`."""

    ORG_CREATE = "org.create"
    ORG_RENAME = "org.rename"
    ORG_UPDATE_SETTINGS = "org.update_settings"
    ORG_DELETE = "org.delete"
    ORG_SET_PLAN = "org.set_plan"
    ORG_SET_BILLING = "org.set_billing"
    ORG_INVITE_USER = "org.invite_user"
    ORG_REVOKE_INVITATION = "org.revoke_invitation"
    ORG_ADD_USER = "org.add_user"
    ORG_REMOVE_USER = "org.remove_user"
    ORG_CHANGE_ROLE = "org.change_role"
    APP_CREATE = "oauth.create_app"
    APP_UPDATE = "oauth.update_app"
    APP_DELETE = "oauth.delete_app"
    APP_REFRESH_SECRET = "oauth.refresh_secret"  # noqa: S105
    APP_DELETE_SECRET = "oauth.delete_secret"  # noqa: S105
    APP_GRANT_EXCHANGE = "oauth.grant_token_exchange"
    APP_REVOKE_EXCHANGE = "oauth.revoke_token_exchange"
    APP_GRANT_SCOPE = "oauth.grant_scope"
    APP_REVOKE_SCOPE = "oauth.revoke_scope"
    REPO_CREATE = "repo.create"
    REPO_DELETE = "repo.delete"
    REPO_MOVE = "repo.move"
    REPO_UPDATE_SETTINGS = "repo.update_settings"
    REPO_ALLOW_REDIRECT = "repo.allow_redirect"
    REPO_UNLINK_REDIRECT = "repo.unlink_redirect"
    WEBHOOK_CREATE = "webhook.create"
    WEBHOOK_UPDATE = "webhook.update"
    WEBHOOK_ENABLE = "webhook.enable"
    WEBHOOK_DISABLE = "webhook.disable"
    WEBHOOK_SUSPEND = "webhook.suspend"
    WEBHOOK_DELETE = "webhook.delete"
    WEBHOOK_SET_SECRET = "webhook.set_secret"  # noqa: S105
    WEBHOOK_DELETE_SECRET = "webhook.delete_secret"  # noqa: S105
    # An exchange, granted or refused.
    OAUTH_TOKEN = "oauth.token"  # noqa: S105
    REVOKE_TOKENS = "oauth.revoke_tokens"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who is acting, from where and with what. Names are kept as they were at that moment.

    `token` and `oauth` are the JSON objects of the wire: the personal token or the app that was used. Whether the token
    is still there is found out by whoever reads the log.
    """

    name: str
    user_id: str | None = None
    ip: str | None = None
    user_agent: str | None = None
    token: dict[str, Any] | None = None
    oauth: dict[str, Any] | None = None
    # The user's when the caller was found; not part of the log (accounts/holding.py).
    credentials_version: int | None = None


# The operator's command line, and the hub itself.
SYSTEM = Actor("system")


@dataclass(frozen=True, slots=True)
class Entry:
    """The order of the fields is that of `store.ENTRY`."""

    id: str
    org_id: str
    created_at: int
    type: str
    message: str
    author_id: str | None
    author_name: str
    ip: str | None
    user_agent: str | None
    # JSON texts, as stored.
    data: str | None
    token: str | None
    oauth: str | None
    token_id: str | None
    # Where it was sealed; None until then.
    batch: int | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry as it is shown: with what has become of its author and token since."""

    entry: Entry
    author_gone: bool
    token_gone: bool


@dataclass(frozen=True, slots=True)
class Batch:
    """The order of the fields is that of `store.BATCH`."""

    org_id: str
    seq: int
    entries: int
    hash: bytes
    sealed_at: int
    dropped_at: int | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """Where an organization's chain ends. The order of the fields is that of `store.HEAD`."""

    org_id: str
    seq: int
    hash: bytes
    # The batches up to this one have lost their entries to retention.
    dropped: int = 0
    # The first batch that was sealed after the head before it had been tampered with.
    broken: int | None = None
    mac: bytes = b""

    @property
    def is_broken(self) -> bool:
        """Until retention has dropped all that came before."""
        return self.broken is not None and self.dropped < self.broken


def stored_object(text: str) -> dict[str, Any]:
    """A JSON text of an entry. One that was tampered with is shown as it is: the log must stay readable."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"unreadable": text}
