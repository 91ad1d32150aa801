"""Who did something, and the entry that tells of it."""

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


@dataclass(frozen=True, slots=True)
class Actor:
    """Who is acting, from where and with what. Names are kept as they were at that moment.

    `token` and `oauth` are the JSON objects of the wire: the personal token or the app that was used.
    """

    name: str
    user_id: str | None = None
    ip: str | None = None
    user_agent: str | None = None
    token: dict[str, Any] | None = None
    oauth: dict[str, Any] | None = None


# The operator's command line, and the hub itself.
SYSTEM = Actor("system")


@dataclass(frozen=True, slots=True)
class Entry:
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
    batch: int | None
