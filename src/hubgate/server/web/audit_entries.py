"""Audit entries as JSON, shared by the API and the download on the audit log page."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization
from hubgate.server.audit import read
from hubgate.server.audit.chain import SYSTEM_ID, author_type, exact_time
from hubgate.server.audit.filters import Filter
from hubgate.server.audit.model import ListedEntry, parse_stored_object
from hubgate.server.clock import iso
from hubgate.server.http.streaming import StreamedResponse
from hubgate.server.web.avatars import avatar_url
from hubgate.server.web.streamed_json import json_array


class AuditAuthor(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    id: str = msgspec.field(name="_id")
    user: str
    avatar_url: str
    type: Literal["user", "system"]
    deleted: bool | UnsetType = UNSET


class AuditToken(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["access_token"]
    id: str
    deleted: bool
    role: str | UnsetType = UNSET
    last4: str | UnsetType = UNSET


class AuditApp(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    client_id: str
    name: str | UnsetType = UNSET


class AuditEntry(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """An entry of the audit log."""

    id: str = msgspec.field(name="_id")
    created_at: str
    type: str
    message: str
    author: AuditAuthor
    data: dict[str, Any] | UnsetType = UNSET
    ip: str | UnsetType = UNSET
    user_agent: str | UnsetType = UNSET
    token: AuditToken | UnsetType = UNSET
    oauth: AuditApp | UnsetType = UNSET


def describe(listed: ListedEntry) -> dict[str, Any]:
    """Return an entry as JSON. Sealed fields are shown exactly as sealed, so that clients can verify the chain."""
    entry = listed.entry
    author: dict[str, Any] = {
        "_id": entry.author_id or SYSTEM_ID,
        "user": entry.author_name,
        "avatarUrl": avatar_url(entry.author_id or SYSTEM_ID),
        "type": author_type(entry),
    }
    if listed.author_gone:
        author["deleted"] = True
    fields: dict[str, Any] = {
        "_id": entry.id,
        "createdAt": exact_time(entry.created_at),
        "type": entry.type,
        "message": entry.message,
        "author": author,
    }
    if entry.data is not None:
        fields["data"] = parse_stored_object(entry.data)
    if entry.ip is not None:
        fields["ip"] = entry.ip
    if entry.user_agent is not None:
        fields["userAgent"] = entry.user_agent
    if entry.token is not None:
        fields["token"] = {**parse_stored_object(entry.token), "deleted": listed.token_gone}
    if entry.oauth is not None:
        fields["oauth"] = parse_stored_object(entry.oauth)
    return fields


def export(accounts: Accounts, organization: Organization, entry_filter: Filter) -> StreamedResponse:
    """Respond with the entries that match the filter, as a JSON download."""
    today = iso(accounts.clock())[:10]
    headers = {
        "content-type": "application/json",
        # Account names cannot contain quotes (accounts/names.py).
        "content-disposition": f'attachment; filename="{organization.name}-audit-log-{today}.json"',
    }
    entries = read.export(accounts.db, organization.id, entry_filter)
    return StreamedResponse(json_array(entries, describe), headers)
