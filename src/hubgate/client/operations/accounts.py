"""The signed-in user, personal tokens, and organizations with their audit log."""

from hubgate.client.addresses import path_segment
from hubgate.client.codec import decode, decode_list
from hubgate.client.models import AccessToken, AuditEntry, Member, Organization, WhoAmI
from hubgate.client.session import Call, Session, json_call
from hubgate.client.wire import MIB, Flow

# Enough for a hundred thousand entries, the maximum of an export.
_MAX_EXPORT_BYTES = 512 * MIB
_EXPORT_SECONDS = 300.0


def whoami(session: Session) -> Flow[WhoAmI]:
    return decode(WhoAmI, (yield from session.json(Call("GET", "/api/whoami-v2"))))


def list_tokens(session: Session, *, limit: int | None = None) -> Flow[list[AccessToken]]:
    found = yield from session.pages(Call("GET", "/api/settings/tokens", query={"limit": _page_size(limit)}), limit)
    return decode_list(AccessToken, found)


def rename_token(session: Session, token_id: str, name: str) -> Flow[AccessToken]:
    call = json_call("PATCH", f"/api/settings/tokens/{path_segment(token_id)}", {"name": name}, repeatable=True)
    return decode(AccessToken, (yield from session.json(call)))


def revoke_token(session: Session, token_id: str) -> Flow[None]:
    yield from session.call(Call("DELETE", f"/api/settings/tokens/{path_segment(token_id)}"))


def get_organization(session: Session, name: str) -> Flow[Organization]:
    return decode(Organization, (yield from session.json(Call("GET", f"{_path(name)}/overview"))))


def list_members(
    session: Session, name: str, *, search: str | None = None, limit: int | None = None
) -> Flow[list[Member]]:
    query = {"search": search, "limit": _page_size(limit)}
    return decode_list(Member, (yield from session.pages(Call("GET", f"{_path(name)}/members", query=query), limit)))


def set_member_role(session: Session, name: str, user: str, role: str) -> Flow[None]:
    yield from session.call(json_call("PUT", f"{_path(name)}/members/{path_segment(user)}/role", {"role": role}))


def remove_member(session: Session, name: str, user: str) -> Flow[None]:
    """Remove a member from an organization. Members may remove themselves; only admins may remove others."""
    yield from session.call(Call("DELETE", f"{_path(name)}/members/{path_segment(user)}"))


def export_audit_log(session: Session, name: str, *, query: str | None = None) -> Flow[list[AuditEntry]]:
    """Export the audit log of an organization, newest first.

    `query` filters as on the web page, for example `type:oauth.token author:ada`.
    """
    call = Call(
        "GET",
        f"{_path(name)}/audit-log/export",
        query={"q": query},
        max_bytes=_MAX_EXPORT_BYTES,
        read_timeout=_EXPORT_SECONDS,
    )
    return decode_list(AuditEntry, (yield from session.json(call)))


def _path(organization: str) -> str:
    return f"/api/organizations/{path_segment(organization)}"


def _page_size(limit: int | None) -> int | None:
    return None if limit is None else min(max(limit, 1), 1000)
