"""Every route of the hub has its row here: which question guards it. A route without one fails."""

from pathlib import Path

import pytest
from tests.bed.blocking import blocking
from tests.bed.engines import SqliteEngine, settings_for

from hubgate.server.access.actions import Action
from hubgate.server.app import build_app, open_hub
from hubgate.server.http.routes import Route

ACTIONS = {action.rule.name for action in Action}

GUARDED_BY = {
    "GET /": "hub.public",
    "GET /api/agent-harnesses": "hub.public",
    "GET /api/openapi.json": "hub.public",
    "GET /api/whoami-v2": "account.identify",
    "GET /avatars/{id}.svg": "hub.public",
    "GET /docs/api": "hub.public",
    "GET /healthz": "hub.public",
    "GET /metrics": "hub.public",
    "GET /oauth/jwks": "hub.public",
    "GET /readyz": "hub.public",
    "GET /static/{digest}/{name}": "hub.public",
    "HEAD /api/telemetry/{topic:path}": "hub.public",
    "POST /theme": "hub.public",
}


@pytest.fixture
def routes(sqlite_template: Path, tmp_path: Path) -> list[Route]:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    # With the optional routes too: metrics were asked for on the public address.
    settings = settings_for(url, tmp_path, port="8000", metrics_listen="127.0.0.1:8000")

    async def table() -> list[Route]:
        hub = await open_hub(settings)
        try:
            return list(build_app(hub).table.routes)
        finally:
            await hub.close()

    return blocking(table())


def test_every_route_is_listed_with_its_action(routes: list[Route]) -> None:
    assert {f"{route.method} {route.path}": route.action for route in routes} == GUARDED_BY


def test_every_action_of_a_route_is_in_the_registry(routes: list[Route]) -> None:
    assert {route.action for route in routes} <= ACTIONS
