"""For every route, a request that works for the owner of its resource, and the policy's decision for others."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.access.sweep_stage import Sender, Stage

from hubgate.server.access.actions import Action
from hubgate.server.access.decision import ALLOWED, Decision
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import HUB, NOBODY, Account, Collection, Organization, Post, Repo, Resource
from hubgate.server.edge.routes import Route
from hubgate.server.http.surface import Surface

_OID = "0" * 64
_WATCHED = [{"type": "user", "name": "vic"}]
_APP = {"name": "Taken", "redirectUris": ["https://evil.example/callback"]}
_WEBHOOK = {"url": "https://evil.example/hook", "watched": _WATCHED}
_COMMIT = b'{"key":"header","value":{"summary":"x"}}\n{"key":"file","value":{"path":"x","content":"x"}}\n'

# By the end of a path; the first match is used. Bytes are sent as they are, the rest as JSON.
_JSON: tuple[tuple[str, Any], ...] = (
    ("/api/repos/create", {"name": "planted", "organization": "acme"}),
    ("/api/repos/delete", {"name": "secret", "organization": "acme"}),
    ("/api/repos/move", {"fromRepo": "acme/secret", "toRepo": "acme/taken"}),
    ("/user-access-request/handle", {"status": "accepted", "user": "eve"}),
    ("/user-access-request/grant", {"user": "eve"}),
    ("/user-access-request/batch", {"status": "accepted", "requests": [{"user": "eve"}]}),
    ("/api/collections", {"title": "Planted", "namespace": "acme"}),
    ("/api/collections/{owner}/{slug}", {"title": "Taken"}),
    ("/{slug}/items", {"item": {"type": "space", "id": "acme/open"}}),
    ("/items/{item}", {"note": "planted"}),
    ("/commit/{rev:path}", _COMMIT),
    ("/preupload/{rev:path}", {"files": [{"path": "x", "size": 1, "sample": ""}]}),
    ("/paths-info/{rev:path}", {"paths": ["config.json"]}),
    ("/super-squash/{rev:path}", {}),
    ("/branch/{branch:path}", {}),
    ("/tag/{rev:path}", {"tag": "planted"}),
    ("/discussions", {"title": "Planted"}),
    ("/discussions/{num}/comment", {"comment": "Planted"}),
    ("/comment/{cid}/edit", {"content": "Planted"}),
    ("/comment/{cid}/reaction", {"reaction": "👍"}),
    ("/discussions/{num}/pin", {"pinned": True}),
    ("/discussions/{num}/status", {"status": "closed"}),
    ("/discussions/{num}/title", {"title": "Planted"}),
    ("/settings", {"private": False}),
    ("/secrets", {"key": "PLANTED", "value": "x"}),
    ("/variables", {"key": "PLANTED", "value": "x"}),
    ("/sleeptime", {"seconds": 3600}),
    ("/hardware", {"flavor": "cpu-basic"}),
    ("/objects/batch", {"operation": "upload", "objects": [{"oid": _OID, "size": 1}]}),
    ("/git-receive-pack", b"0000"),
    ("/git-upload-pack", b"0000"),
    ("/role", {"role": "admin"}),
    ("/exchange/dry-run", {"subjectToken": "vic@example.org"}),
    ("/resources", {"identifier": "https://evil.example/mcp", "name": "Taken"}),
    ("/resources/{id}", {"name": "Taken"}),
    ("/applications", _APP),
    ("/applications/{client_id}", {"name": "Taken"}),
    ("/connected-apps/{client_id}", {"organizations": []}),
    ("/tokens/{id}", {"name": "taken"}),
    ("/webhooks/{id}/replays", {"since": "2026-01-01T00:00:00Z"}),
    ("/webhooks", _WEBHOOK),
    ("/webhooks/{id}", _WEBHOOK),
    ("/webhooks/dry-run", _WEBHOOK),
    ("/webhooks/{id}/dry-run", _WEBHOOK),
)
_FORMS: tuple[tuple[str, dict[str, str]], ...] = (
    ("/settings/access/handle", {"user": "eve", "status": "accepted"}),
    ("/settings/access/grant", {"user": "eve"}),
    ("/collections/new", {"owner": "acme", "title": "Planted by form"}),
    ("/{slug}/items", {"type": "space", "id": "acme/open"}),
    ("/items/{item}/note", {"note": "planted"}),
    ("/items/{item}/move", {"position": "0"}),
    ("/{slug}/settings", {"title": "Taken by form", "theme": "blue"}),
    ("/new/{rest:path}", {"path": "planted", "content": "x", "seen": "0" * 40}),
    ("/edit/{rest:path}", {"path": "config.json", "content": "planted", "seen": "0" * 40}),
    ("/upload/{rest:path}", {"seen": "0" * 40}),
    ("/delete/{rest:path}", {"seen": "0" * 40}),
    ("/new", {"owner": "acme", "name": "planted", "visibility": "public"}),
    ("/new-dataset", {"owner": "acme", "name": "planted", "visibility": "public"}),
    ("/new-space", {"owner": "acme", "name": "planted", "visibility": "public", "sdk": "static"}),
    ("/app/secrets", {"secret_key": "PLANTED", "secret_value": "x"}),
    ("/app/variables", {"variable_key": "PLANTED", "variable_value": "x"}),
    ("/app/sleep", {"seconds": "3600"}),
    ("/settings/visibility", {"visibility": "public"}),
    ("/settings/gate", {"gated": "auto"}),
    ("/settings/discussions", {"discussions": "on"}),
    ("/discussions", {"title": "Planted"}),
    ("/discussions/{num}/comment", {"comment": "Planted"}),
    ("/comment/{cid}/edit", {"content": "Planted"}),
    ("/comment/{cid}/reaction", {"reaction": "👍"}),
    ("/discussions/{num}/pin", {"pinned": "on"}),
    ("/discussions/{num}/status", {"status": "closed"}),
    ("/discussions/{num}/title", {"title": "Planted"}),
    ("/settings/move", {"owner": "acme", "name": "taken"}),
    ("/settings/members", {"who": "eve", "role": "admin"}),
    ("/role", {"role": "admin"}),
    ("/settings/rename", {"name": "taken", "username": "taken"}),
    ("/settings/profile", {"fullname": "Taken"}),
    ("/settings/billing", {"can_pay": "on"}),
    ("/secret", {"secret": "taken"}),
    ("/tokens/{id}", {"name": "taken"}),
)
_TYPES = {
    "/commit/{rev:path}": "application/x-ndjson",
    "/git-receive-pack": "application/x-git-receive-pack-request",
    "/git-upload-pack": "application/x-git-upload-pack-request",
}
_MEMBERS = "/api/organizations/{name}/members"
_GATEWAY = ("/v1/", "/api/jobs/", "/api/scheduled-jobs/")
_QUERIES = {"/info/refs": "?service=git-receive-pack", _MEMBERS: "?email=vic@example.org"}

_WRITE, _CONTENT = (Action.REPO_WRITE,), (Action.REPO_READ_CONTENT,)
_WRITE_OR_PROPOSE = (Action.REPO_WRITE, Action.DISCUSSION_OPEN)
# The author of an open pull request may push to it.
_PUSH = (Action.REPO_WRITE, Action.DISCUSSION_PUSH)
# Actions these requests need besides the first one of their route; one of each group.
_FURTHER: tuple[tuple[str, str, tuple[Action, ...]], ...] = (
    ("POST", "/commit/{rev:path}", _WRITE),
    ("POST", "/preupload/{rev:path}", _WRITE),
    ("GET", "/xet-write-token/{rev:path}", _WRITE),
    ("GET", "/resolve/{rest:path}", _CONTENT),
    ("GET", "/info/refs", _PUSH),
    ("POST", "/git-receive-pack", _PUSH),
    ("POST", "/objects/batch", _WRITE_OR_PROPOSE),
    *(("GET", f"/{verb}/{{rest:path}}", _WRITE_OR_PROPOSE) for verb in ("new", "edit", "upload", "delete")),
    *(("POST", f"/{verb}/{{rest:path}}", _WRITE) for verb in ("new", "edit", "upload", "delete")),
    ("PATCH", "/discussions/{num}/status", (Action.DISCUSSION_CLOSE,)),
    ("PATCH", "/discussions/{num}/title", (Action.DISCUSSION_CLOSE,)),
    ("GET", "/comment/{cid}/edit", (Action.DISCUSSION_EDIT,)),
    ("GET", "/comment/{cid}/hide", (Action.DISCUSSION_CLOSE,)),
    ("GET", "/discussions/{num}/delete", (Action.DISCUSSION_MODERATE,)),
    ("POST", "/discussions/{num}/delete", (Action.DISCUSSION_MODERATE,)),
    ("POST", "/comment/{cid}/edit", (Action.DISCUSSION_EDIT,)),
    ("POST", "/comment/{cid}/hide", (Action.DISCUSSION_CLOSE,)),
    ("POST", "/discussions/{num}/pin", (Action.DISCUSSION_MODERATE,)),
    ("POST", "/discussions/{num}/status", (Action.DISCUSSION_CLOSE,)),
    ("POST", "/discussions/{num}/title", (Action.DISCUSSION_CLOSE,)),
    ("DELETE", "/discussions/{num}", (Action.DISCUSSION_MODERATE,)),
    ("DELETE", "/discussions/{num}/ref", (Action.DISCUSSION_CLOSE,)),
    ("PUT", "/settings", (Action.REPO_MANAGE,)),
    ("GET", _MEMBERS, (Action.ORG_READ_SETTINGS,)),
)
_PATHS = {
    "rest": "main/config.json",
    "rev": "main",
    "branch": "side",
    "sha": "main",
    "secret": "x" * 43,
    "num": "1",
    "status": "pending",
    "subject": "webhooks",
    "guide": "tokens",
    "decision": "0001-own-route-table",
    "reference": "scopes",
}


def path_values() -> dict[str, str]:
    """The values of the parameters in a repo's paths."""
    return dict(_PATHS)


def csrf_field(sender: Sender) -> str:
    return urlencode({"csrf": sender.csrf})


def form_with_file(fields: dict[str, str]) -> tuple[str, bytes]:
    """The type and the content of a form with a file."""
    parts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{fields[name]}\r\n' for name in fields]
    parts.append('--b\r\nContent-Disposition: form-data; name="files"; filename="planted"\r\n\r\nx\r\n--b--\r\n')
    return "multipart/form-data; boundary=b", "".join(parts).encode()


class Request(NamedTuple):
    method: str
    url: str
    headers: dict[str, str]
    content: bytes | None = None
    json: Any = None
    data: dict[str, str] | None = None


def request(route: Route, stage: Stage, sender: Sender, organization: str = "acme") -> Request:
    """`organization` is the one in the path; ids are always vic's or acme's."""
    query = next((query for end, query in _QUERIES.items() if route.path.endswith(end)), "")
    path = _filled(route, stage, organization) + query
    headers = dict(sender.headers)
    if is_forwarded(route):
        headers["x-hf-bill-to"] = organization
    if route.method in ("GET", "HEAD"):
        return Request(route.method, path, headers)
    if route.surface is Surface.PAGE:
        fields = next((form for end, form in _FORMS if route.path.endswith(end)), {})
        fields = {**fields, "csrf": sender.csrf}
        if route.has_files:
            headers["content-type"], content = form_with_file(fields)
            return Request(route.method, path, headers, content=content)
        return Request(route.method, path, headers, data=fields)
    body = next((given for end, given in _JSON if route.path.endswith(end)), None)
    if isinstance(body, bytes):
        headers["content-type"] = next(kind for end, kind in _TYPES.items() if route.path.endswith(end))
        return Request(route.method, path, headers, content=body)
    return Request(route.method, path, headers, json=body)


def _filled(route: Route, stage: Stage, organization: str) -> str:
    """Every parameter names an existing thing of vic's or of her organization."""
    belongings = stage.organizations if of_organization(route) else stage.own
    segments, before = [], ""
    for segment in route.path.split("/"):
        name = re.sub(r"^\{(\w+)(:path)?\}.*", r"\1", segment)
        value = {"name": organization, "user": "vic", **_PATHS, **stage.collection, **belongings}.get(name, "0" * 24)
        if name == "cid":
            value = stage.comments[_repo_of(route, stage)[0]]
        elif name in ("namespace", "repo"):
            value = _repo_of(route, stage)[0].split("/")[name == "repo"]
        elif name == "id":
            value = belongings.get(before, "0" * 24)
        elif before == "tag" and route.method == "DELETE":
            value = "v1"
        segments.append(re.sub(r"\{\w+(:path)?\}", lambda _, value=value: value, segment))
        before = segment
    return "/".join(segments)


def of_organization(route: Route) -> bool:
    return route.path.removeprefix("/api").startswith("/organizations/{name}")


def is_forwarded(route: Route) -> bool:
    return route.path.startswith(_GATEWAY)


def _repo_of(route: Route, stage: Stage) -> tuple[str, Repo]:
    kind = next((kind for kind in ("datasets", "spaces") if f"/{kind}/" in route.path), "models")
    return stage.repos["spaces" if route.path.startswith("/hosted/") else kind]


def decision(route: Route, stage: Stage, sender: Sender) -> Decision:
    """The policy's decision on this request."""
    for group in _needs(route, stage, sender):
        decisions = [decide(sender.identity, action, resource) for action, resource in group]
        if not any(one.allowed for one in decisions):
            return decisions[0]
    return ALLOWED


def _needs(route: Route, stage: Stage, sender: Sender) -> Iterator[list[tuple[Action, Resource]]]:
    resource = _resource(route, stage, sender)
    yield [(route.action, resource)]
    for method, end, group in _FURTHER:
        if route.method == method and route.path.endswith(end) and ("{namespace}" in route.path or end == route.path):
            yield [(action, _judged(action, resource, stage)) for action in group]


def _judged(action: Action, resource: Resource, stage: Stage) -> Resource:
    """Vic opened every pull request, and wrote every comment."""
    return Post(resource, stage.vic.id) if Post in action.rule.on and isinstance(resource, Repo) else resource


def _resource(route: Route, stage: Stage, sender: Sender) -> Resource:
    kinds, path = route.action.rule.on, route.path
    if route.action is Action.OPERATOR_USE:
        return HUB
    if "{namespace}" in path or path in ("/api/repos/delete", "/api/repos/move"):
        return _repo_of(route, stage)[1]
    if Repo in kinds:
        return Repo.missing()
    if "{slug}" in path:
        return Collection(Organization(stage.acme_id), private=True)
    creates = path in ("/api/repos/create", "/api/collections") or (
        path.startswith(("/new", "/collections/new")) and route.method == "POST"
    )
    if of_organization(route) or creates or is_forwarded(route):
        return Organization(stage.acme_id) if Organization in kinds else HUB
    if Account in kinds:
        return Account(sender.identity.user_id) if sender.identity.user_id else NOBODY
    return HUB


def names_by_id(route: Route) -> bool:
    return bool({"id", "client_id", "delivery"} & set(route.parameters))


def names_anothers(route: Route) -> bool:
    """Whether it concerns the caller's own account and names another account's object by its id."""
    return Account in route.action.rule.on and "{name}" not in route.path and names_by_id(route)
