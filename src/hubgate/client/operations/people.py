"""The signed-in user, personal tokens, and organizations with their audit log."""

from hubgate.client.addresses import segment
from hubgate.client.models import AccessToken, AuditEntry, Member, Organization, WhoAmI
from hubgate.client.session import Call, Session, json_call
from hubgate.client.shaping import shaped, shaped_list
from hubgate.client.wire import MIB, Flow

# Enough for a hundred thousand entries, the maximum of an export.
_MOST_EXPORT = 512 * MIB
_EXPORT_SECONDS = 300.0


def whoami(session: Session) -> Flow[WhoAmI]:
    return shaped(WhoAmI, (yield from session.json(Call("GET", "/api/whoami-v2"))))


def tokens(session: Session, limit: int | None) -> Flow[list[AccessToken]]:
    found = yield from session.pages(Call("GET", "/api/settings/tokens", query={"limit": _page_size(limit)}), limit)
    return shaped_list(AccessToken, found)


def rename_token(session: Session, token_id: str, name: str) -> Flow[AccessToken]:
    call = json_call("PATCH", f"/api/settings/tokens/{segment(token_id)}", {"name": name}, repeatable=True)
    return shaped(AccessToken, (yield from session.json(call)))


def revoke_token(session: Session, token_id: str) -> Flow[None]:
    yield from session.call(Call("DELETE", f"/api/settings/tokens/{segment(token_id)}"))


def organization(session: Session, name: str) -> Flow[Organization]:
    return shaped(Organization, (yield from session.json(Call("GET", f"{_of(name)}/overview"))))


def members(session: Session, name: str, search: str | None, limit: int | None) -> Flow[list[Member]]:
    query = {"search": search, "limit": _page_size(limit)}
    return shaped_list(Member, (yield from session.pages(Call("GET", f"{_of(name)}/members", query=query), limit)))


def set_role(session: Session, name: str, user: str, role: str) -> Flow[None]:
    yield from session.call(json_call("PUT", f"{_of(name)}/members/{segment(user)}/role", {"role": role}))


def remove_member(session: Session, name: str, user: str) -> Flow[None]:
    yield from session.call(Call("DELETE", f"{_of(name)}/members/{segment(user)}"))


def audit_log(session: Session, name: str, query: str | None) -> Flow[list[AuditEntry]]:
    call = Call(
        "GET",
        f"{_of(name)}/audit-log/export",
        query={"q": query},
        most=_MOST_EXPORT,
        patience=_EXPORT_SECONDS,
    )
    return shaped_list(AuditEntry, (yield from session.json(call)))


def _of(organization: str) -> str:
    return f"/api/organizations/{segment(organization)}"


def _page_size(limit: int | None) -> int | None:
    return None if limit is None else min(max(limit, 1), 1000)
