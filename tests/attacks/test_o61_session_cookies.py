"""O61: the API and the token endpoints ignore session cookies: they accept tokens only."""

import re

import httpx
import pytest
from tests.bed.people import browser_of, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.app import build_app
from hubgate.server.edge.routes import Route
from hubgate.server.http.surface import Surface
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine


def endpoints(hub: RunningHub) -> list[Route]:
    """All routes for programs. File downloads are also shown on pages (attack O60)."""

    async def work(opened: Hub) -> list[Route]:
        return [route for route in build_app(opened).table.routes if not _for_browsers(route)]

    return hub.call(work)


def _for_browsers(route: Route) -> bool:
    return route.surface is Surface.PAGE or (route.surface is Surface.FILE and route.method == "GET")


def ask(client: httpx.Client, route: Route) -> tuple[int, str]:
    values = {"name": "acme", "user": "ada"}
    path = re.sub(r"{(\w+)(:path)?}", lambda match: values.get(match.group(1), "0" * 24), route.path)
    response = client.request(route.method, path, json={} if route.method in ("POST", "PUT", "PATCH") else None)
    # OAuth errors contain the request id.
    return response.status_code, response.text.replace(response.headers["x-request-id"], "")


def test_o61_cookie_changes_no_api_answer(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    routes = endpoints(hub)
    assert any(route.action != "hub.public" for route in routes)
    with browser_of(hub, ada) as signed_in, hub.client() as stranger:
        assert signed_in.get("/settings/profile").status_code == 200
        for route in routes:
            with_cookie = ask(signed_in, route)
            assert with_cookie == ask(stranger, route), f"{route.method} {route.path}"
            if route.action == "account.identify":
                assert with_cookie[0] == 401
        assert signed_in.get("/settings/profile").status_code == 200, "nothing was signed out or deleted by that"


def test_o61_cookie_value_is_not_a_token(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        cookie = client.cookies["token"]
    response = httpx.get(f"{hub.url}/api/whoami-v2", headers={"authorization": f"Bearer {cookie}"})
    assert response.status_code == 401


def test_o61_token_is_not_a_cookie(hub: RunningHub) -> None:
    """A leaked token must not open the pages, where further tokens can be created."""
    token = create_token(hub, create_user(hub, "ada"))
    with hub.client(cookies={"token": token}) as client:
        assert client.get("/settings/tokens").status_code == 303
        client.headers["authorization"] = f"Bearer {token}"
        assert client.get("/settings/tokens").status_code == 303
        assert client.get("/api/whoami-v2").status_code == 200
