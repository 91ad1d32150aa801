"""The schemas of webhook payloads match the recorded payloads and the documentation page."""

import json
import re
from copy import deepcopy
from typing import Any

import jsonschema_rs
import pytest
from tests.bed.running_hub import RunningHub
from tests.protocol.golden import FOLDER

from hubgate.server.events.kinds import Kind

pytestmark = pytest.mark.one_engine

GOLDEN = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
WEBHOOK = {"id": "0" * 24, "version": 3}


def kind_of(payload: dict[str, Any]) -> Kind:
    event = payload["event"]
    return next(kind for kind in Kind if (kind.scope, kind.action) == (event["scope"], event["action"]))


def closed(schema: Any) -> Any:
    """The same schema, without additional properties."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(part) for name, part in schema.items()}
    return {**found, "additionalProperties": False} if found.get("type") == "object" else found


@pytest.mark.parametrize("name", GOLDEN)
def test_every_member_of_a_recorded_payload_is_described(name: str) -> None:
    payload = {**GOLDEN[name], "webhook": WEBHOOK}
    schema = closed(kind_of(payload).schema("https://hub.example/schema"))
    jsonschema_rs.validate(schema, payload)
    for path in (("event",), ("repo",), ("repo", "id"), ("repo", "owner", "id"), ("webhook", "version")):
        broken = deepcopy(payload)
        inside = broken
        for step in path[:-1]:
            inside = inside[step]
        del inside[path[-1]]
        assert not jsonschema_rs.is_valid(schema, broken), path


def test_every_kind_has_a_schema_that_fits_only_its_own_payload() -> None:
    assert {kind_of(payload) for payload in GOLDEN.values()} == set(Kind)
    for payload in GOLDEN.values():
        fits = [kind for kind in Kind if jsonschema_rs.is_valid(kind.schema("x:"), {**payload, "webhook": WEBHOOK})]
        assert fits == [kind_of(payload)]


def test_every_kind_is_documented() -> None:
    page = (FOLDER.parents[1] / "docs/events.md").read_text()
    for kind in Kind:
        assert f"| `{kind.scope}` | `{kind.action}` | {kind.when}" in page, kind
        assert all(f"`{name}`" in page for name in kind.extras), kind


def test_schemas_are_served_and_shown(hub: RunningHub) -> None:
    with hub.client() as client:
        listed = client.get("/api/event-schemas")
        assert listed.headers["access-control-allow-origin"] == "*"
        assert [row["name"] for row in listed.json()] == [kind.full_name for kind in Kind]
        page = client.get("/docs/webhooks").text

        def members(section: str) -> set[str]:
            shown = page.partition(f'id="{section}"')[2].partition("</section>")[0]
            return set(re.findall(r"<code>(\w+)", shown))

        for row, kind in zip(listed.json(), Kind, strict=True):
            assert (row["scope"], row["action"], row["domain"]) == (kind.scope, kind.action, kind.domain)
            schema = client.get(row["schema"]).json()
            assert (schema["$id"], schema) == (row["schema"], kind.schema(row["schema"]))
            assert f'id="{kind.full_name}"' in page
            assert f"Sent when {kind.when}." in page
            assert f'href="/api/event-schemas/{kind.full_name}"' in page
            assert members("every") | members(kind.full_name) == set(schema["properties"])
        refused = client.get("/api/event-schemas/repo.odd")
        assert (refused.status_code, refused.json()["error"]) == (404, "Kind of event not found.")
        assert "/docs/webhooks" in client.get("/docs").text
