"""The reference names every setting, scope, event, error code, command and endpoint, as pages of a running hub."""

import ast
import json
import re
from html import unescape
from pathlib import Path

import jsonschema_rs
import pytest
from tests.bed.running_hub import RunningHub
from tests.docs import reference
from tests.protocol.contract import SNAPSHOT

from hubgate.cli.commands import COMMANDS
from hubgate.server import errors, metrics
from hubgate.server.events.kinds import Kind
from hubgate.server.scopes import BUILT_IN_SCOPES
from hubgate.server.settings import OPTIONS
from hubgate.server.web.pages.api_reference.examples import value_of

SOURCE = reference.ROOT / "src" / "hubgate" / "server"
DASHBOARD = reference.ROOT / "docs" / "grafana-dashboard.json"


def text_of(hub: RunningHub, address: str) -> str:
    with hub.client() as client:
        html = client.get(f"/docs/{address}").raise_for_status().text
    return unescape(re.sub(r"<wbr>|<[^>]+>", "", html))


def test_generated_pages_match_the_code() -> None:
    for name, text in reference.pages().items():
        assert (reference.FOLDER / name).read_text() == text, "run: make contract"


def test_settings_scopes_events_and_commands_are_listed(sqlite_hub: RunningHub) -> None:
    settings = text_of(sqlite_hub, "guides/settings")
    assert [item.name for item in OPTIONS if f"HUBGATE_{item.name.upper()}" not in settings] == []
    scopes = text_of(sqlite_hub, "reference/scopes")
    assert [scope.name for scope in BUILT_IN_SCOPES if f"{scope.name}\n{scope.text}" not in scopes] == []
    events = text_of(sqlite_hub, "reference/events")
    assert [
        kind.full_name for kind in Kind if f"{kind.scope} {kind.action}\nSent when {kind.when}." not in events
    ] == []
    assert events.count('"event": {') == len(Kind), "an example for each kind"
    commands = text_of(sqlite_hub, "reference/commands")
    assert [one.name for one in COMMANDS if f"hubgate {one.name}\n{one.help[0].upper()}" not in commands] == []
    assert "hubgate admin keys rotate\n" in commands


def test_every_endpoint_has_an_example(sqlite_hub: RunningHub) -> None:
    with sqlite_hub.client() as client:
        index = client.get("/docs/api").text
        pages = {at: client.get(at).text for at in set(re.findall(r'href="(/docs/api/[\w-]+)"', index))}
    shown = {anchor for page in pages.values() for anchor in re.findall(r'<code id="request-(\w+)">', page)}
    assert shown == {anchor for page in pages.values() for anchor in re.findall(r'<article [^>]*id="(\w+)">', page)}
    assert len(shown) > 200
    assert f'"{sqlite_hub.url}/api/settings/webhooks"' in unescape(re.sub("<[^>]+>", "", pages["/docs/api/webhooks"]))


def test_examples_match_their_schemas() -> None:
    document = json.loads(SNAPSHOT.read_text())
    document["servers"] = [{"url": "https://hub.example"}]
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            bodies = [
                (content["schema"], True) for content in described.get("requestBody", {}).get("content", {}).values()
            ]
            answers = [
                (content["schema"], False)
                for status, answer in described["responses"].items()
                if status.startswith("2")
                for content in answer.get("content", {}).values()
            ]
            for schema, is_request in bodies + answers:
                example = value_of(schema, document, is_request=is_request)
                try:
                    jsonschema_rs.validate({**schema, "components": document["components"]}, example)
                except jsonschema_rs.ValidationError as error:
                    pytest.fail(f"{method} {path}: {error.message}")


def codes_in(tree: ast.AST) -> set[str]:
    """Values of `code = "…"` in classes and `code="…"` in calls, and the first arguments of OAuth errors."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == "code" for to in node.targets):
            found.append(node.value)
        elif isinstance(node, ast.Call):
            found += [keyword.value for keyword in node.keywords if keyword.arg == "code"]
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in ("OAuthError", "error_redirect", "RedirectedError"):
                found += node.args[:1]
    return {one.value for one in found if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def test_every_error_code_and_status_is_listed(sqlite_hub: RunningHub) -> None:
    page = text_of(sqlite_hub, "reference/errors")
    codes = set().union(*(codes_in(ast.parse(Path(path).read_text())) for path in SOURCE.rglob("*.py")))
    assert {"RepoNotFound", "StorageQuotaExceeded", "invalid_grant"} <= codes
    assert sorted(code for code in codes if not re.search(rf"\b{code}\b", page)) == []
    classes = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.HubError)]
    assert sorted({one.status for one in classes if not re.search(rf"\b{one.status}\b", page)}) == []


def test_the_dashboard_queries_metrics_that_exist(sqlite_hub: RunningHub) -> None:
    known = {
        *metrics.DELIVERY_GAUGES,
        *metrics.SPACE_GAUGES,
        "hubgate_requests_total",
        "hubgate_request_seconds_bucket",
    }
    known |= {f"hubgate_jobs_{name}" for name in ("running", "queued", "abandoned", "expired")}
    source = (SOURCE / "metrics.py").read_text()
    for name in ("hubgate_requests_total", "hubgate_request_seconds", 'f"hubgate_jobs_{name}"'):
        assert name in source
    with sqlite_hub.client() as client:
        served = client.get("/docs/grafana-dashboard.json").raise_for_status().json()
    assert served == json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in served["panels"] for target in panel["targets"]]
    queried = {name for query in queries for name in re.findall(r"\bhubgate_\w+", query)}
    assert queried <= known
    # Alerts and the table of metrics name the same metrics.
    documented = set(re.findall(r"\bhubgate_\w+", (reference.ROOT / "docs/dashboards.md").read_text()))
    assert documented <= known
    assert known - {"hubgate_request_seconds_bucket"} - queried == set()
