"""Actors, entries, batches and heads of the audit log."""

import json
from enum import Enum, unique
from typing import Any

from msgspec import Struct


@unique
class EntryType(Enum):
    """The types of entries, spelled `subject.verb` as existing readers expect."""

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
    RESOURCE_CREATE = "oauth.create_resource"
    RESOURCE_VERIFY = "oauth.verify_resource"
    RESOURCE_UPDATE = "oauth.update_resource"
    RESOURCE_DELETE = "oauth.delete_resource"
    RESOURCE_REFRESH_SECRET = "oauth.refresh_resource_secret"  # noqa: S105
    REPO_CREATE = "repo.create"
    REPO_DELETE = "repo.delete"
    REPO_MOVE = "repo.move"
    REPO_UPDATE_SETTINGS = "repo.update_settings"
    REPO_REVIEW_ACCESS = "repo.review_access"
    REPO_ALLOW_REDIRECT = "repo.allow_redirect"
    REPO_UNLINK_REDIRECT = "repo.unlink_redirect"
    SPACE_RESTART = "space.restart"
    SPACE_PAUSE = "space.pause"
    SPACE_UPDATE_SETTINGS = "space.update_settings"
    SPACE_UPDATE_SECRETS = "space.update_secrets"
    SPACE_UPDATE_VARIABLES = "space.update_variables"
    COLLECTION_CREATE = "collection.create"
    COLLECTION_UPDATE = "collection.update"
    COLLECTION_DELETE = "collection.delete"
    WEBHOOK_CREATE = "webhook.create"
    WEBHOOK_UPDATE = "webhook.update"
    WEBHOOK_ENABLE = "webhook.enable"
    WEBHOOK_DISABLE = "webhook.disable"
    WEBHOOK_SUSPEND = "webhook.suspend"
    WEBHOOK_DELETE = "webhook.delete"
    WEBHOOK_SET_SECRET = "webhook.set_secret"  # noqa: S105
    WEBHOOK_DELETE_SECRET = "webhook.delete_secret"  # noqa: S105
    # A token exchange, granted or rejected.
    OAUTH_TOKEN = "oauth.token"  # noqa: S105
    REVOKE_TOKENS = "oauth.revoke_tokens"


class Actor(Struct, frozen=True):
    """The user who acts, with client address and credential. Names are stored as they were at the time of the change.

    `token` and `oauth` are the JSON objects of the wire: the personal token or the app that was used. Whether the token
    still exists is looked up when the log is read.
    """

    name: str
    user_id: str | None = None
    ip: str | None = None
    user_agent: str | None = None
    token: dict[str, Any] | None = None
    oauth: dict[str, Any] | None = None
    # The user's version when the request was authenticated; not part of the log (accounts/account_locks.py).
    credentials_version: int | None = None


# The operator's command line, and the hub itself.
SYSTEM = Actor("system")


class Entry(Struct, frozen=True):
    """An entry. The fields are in the order of `store.ENTRY`."""

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
    # The batch that contains the entry, and the position there; None until sealed.
    batch: int | None = None
    position: int | None = None


class ListedEntry(Struct, frozen=True):
    """An entry as shown, and whether its author and its token have been deleted since."""

    entry: Entry
    author_gone: bool
    token_gone: bool


class Batch(Struct, frozen=True):
    """A sealed batch. The fields are in the order of `store.BATCH`."""

    org_id: str
    seq: int
    entries: int
    hash: bytes
    sealed_at: int
    dropped_at: int | None = None


class Head(Struct, frozen=True):
    """The end of an organization's chain. The fields are in the order of `store.HEAD`."""

    org_id: str
    seq: int
    hash: bytes
    # Retention has deleted the entries of all batches up to this number.
    dropped: int = 0
    # The first batch that was sealed after tampering with the head was detected.
    broken: int | None = None
    mac: bytes = b""

    @property
    def is_broken(self) -> bool:
        """Whether tampering is on record. False again once retention has dropped the batches up to `broken`."""
        return self.broken is not None and self.dropped < self.broken


def parse_stored_object(text: str) -> dict[str, Any]:
    """Parse a stored JSON object. An invalid text is returned under the key "unreadable": the log must stay readable
    after tampering."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"unreadable": text}
