"""A private repo and a missing one are answered alike, even if something else is wrong with the request.

Every route about a repo is sent malformed queries, bodies and forms by callers who may not know of the repo. A route
that validates the request before it authorizes the caller would reveal which names are taken.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from tests.access.light_client import LightClient, light_client
from tests.access.sweep_requests import csrf_field, form_with_file, path_values
from tests.access.sweep_stage import Sender, stage
from tests.access.test_sweep import is_for, routes_of
from tests.bed.running_hub import RunningHub

from hubgate.server.edge.routes import Route
from hubgate.server.http.request import FORM_TYPE
from hubgate.server.http.surface import Surface

_SENDERS = ("anonymous", "anonymous program", "stranger's session", "stranger's write token", "rita's app with openid")
# Each body is sent with these. A route that rejects one of the malformed queries does so for every body.
_QUERIES = ("", "?create_pr=1")
_MALFORMED_QUERIES = ("?field=%ff", "?service=git-upload-pack&service=twice")
_BODIES = (b"", b"{", b"[]", b"{}", b'{"private": true, "visibility": "public"}')
_TYPES = ("application/json", "text/plain")
_FORMS = ("", "&owner=acme&owner=twice", "&owner=nobody&name=x", "&name=x&name=y")
# For routes that name the repo in their body.
_IN_BODIES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("DELETE", "/api/repos/delete", {"organization": "acme", "name": "{repo}"}),
    ("DELETE", "/api/repos/delete", {"organization": "club", "name": "acme/{repo}"}),
    ("POST", "/api/repos/move", {"fromRepo": "acme/{repo}", "toRepo": "without-namespace"}),
    ("POST", "/api/repos/move", {"fromRepo": "acme/{repo}", "toRepo": "nobody/x"}),
    ("POST", "/api/repos/move", {"fromRepo": "acme/{repo}", "toRepo": "vic/x"}),
    ("POST", "/api/repos/move", {"fromRepo": "acme/{repo}", "toRepo": "acme/a name"}),
)


@pytest.mark.one_engine
def test_private_and_missing_repos_are_answered_alike(hub: RunningHub) -> None:
    senders = [sender for sender in stage(hub).senders if sender.name in _SENDERS]
    assert len(senders) == len(_SENDERS)
    routes = [
        route for route in routes_of(hub) if route.path.startswith(("/{namespace}/{repo}", "/api/models/{namesp"))
    ]
    assert len(routes) > 40
    told: list[str] = []
    with light_client(hub) as client:
        for route in routes:
            for sender in filter(partial(is_for, route), senders):
                for asked in malformed(route, sender):
                    told += differences(client, asked, sender)
        for sender in senders:
            for method, path, body in _IN_BODIES if not sender.is_browser else ():
                told += differences(client, {"method": method, "url": path, "json": body}, sender)
    assert not told, f"{len(told)} answers tell that there is such a repo:\n" + "\n".join(told[:40])


def malformed(route: Route, sender: Sender) -> Iterator[dict[str, Any]]:
    path = route.path.replace("{namespace}", "acme")
    for name, value in path_values().items():
        path = re.sub(rf"\{{{name}(:path)?\}}", value, path)
    sent = list(bodies(route, sender))
    for query in (*_QUERIES, *_MALFORMED_QUERIES):
        asked = {"method": route.method, "url": path + query}
        yield from ({**asked, **body} for body in (sent if query in _QUERIES else sent[:1]))


def bodies(route: Route, sender: Sender) -> Iterator[dict[str, Any]]:
    if route.method == "GET":
        yield {}
    elif route.has_files:
        for form in ({}, {"as": "nothing"}, {"seen": "x"}):
            kind, content = form_with_file({"csrf": sender.csrf, **form})
            yield {"content": content, "headers": {"content-type": kind}}
    elif route.surface is Surface.PAGE:
        headers = {"content-type": FORM_TYPE}
        yield from ({"content": csrf_field(sender) + form, "headers": headers} for form in _FORMS)
    else:
        for kind in _TYPES:
            yield from ({"content": body, "headers": {"content-type": kind}} for body in _BODIES)


def differences(client: LightClient, asked: dict[str, Any], sender: Sender) -> Iterator[str]:
    private, missing = (answer_about(client, asked, sender, repo) for repo in ("secret", "absent"))
    if private != missing:
        pairs = [pair for pair in zip(private, missing, strict=False) if pair[0] != pair[1]]
        yield f"{asked} by {sender.name}: {pairs}"[:700]


def answer_about(client: LightClient, asked: dict[str, Any], sender: Sender, repo: str) -> tuple[Any, ...]:
    sent = {**asked, "url": asked["url"].replace("{repo}", repo)}
    if "json" in sent:
        sent["json"] = {name: value.replace("{repo}", repo) for name, value in sent["json"].items()}
    answer = client.request(**{**sent, "headers": {**sent.get("headers", {}), **sender.headers}})
    noise = (answer.headers["x-request-id"], repo)
    headers = {name: value for name, value in answer.headers.items() if name not in ("date", "x-request-id")}
    return answer.status_code, without(noise, answer.text), without(noise, str(sorted(headers.items())))


def without(noise: tuple[str, ...], text: str) -> str:
    for part in noise:
        text = text.replace(part, "…")
    return text
