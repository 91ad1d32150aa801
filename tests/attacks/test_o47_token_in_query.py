"""O47: an access token in the query string is rejected on every route with CORS, and is not logged."""

import re

import pytest
from tests.bed.lean_http import LeanClient
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub

from hubgate.server.app import build_app
from hubgate.server.http.surface import ErrorShape

pytestmark = pytest.mark.one_engine

SAYS = "Send the token in the Authorization header, not in the address."


def test_o47_token_is_rejected_on_every_route_with_cors(hub: RunningHub) -> None:
    token = create_token(hub, create_user(hub, "ada"))

    async def open_routes(opened):
        return [route for route in build_app(opened).table.routes if route.surface.value.cors]

    routes = hub.call(open_routes)
    assert {route.path for route in routes} >= {"/api/whoami-v2", "/oauth/jwks", "/api/agent-harnesses"}
    with hub.client() as client:
        for route in routes:
            path = re.sub(r"\{\w+(:path)?\}", "x", route.path)
            response = client.request(route.method, f"{path}?access_token={token}")
            assert response.status_code == 400, (route.method, path)
            assert response.headers["x-error-message"] == SAYS
            if route.surface.value.errors is ErrorShape.OAUTH:
                body = response.json()
                assert (body["error"], body["error_description"]) == ("invalid_request", SAYS)
    until(lambda: hub.log.count('"status":400') >= len(routes))
    assert hub.log.count('"status":400') == len(routes)
    assert token not in hub.log


@pytest.mark.parametrize(
    "query",
    ["access_token={}", "a=b&access_token={}", "access_token={}&a=b", "access%5Ftoken={}", "%61ccess_token={}"],
)
def test_o47_token_is_rejected_in_every_spelling_and_beside_a_valid_header(hub: RunningHub, query: str) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    for known in (None, token):
        with api(hub, known) as client:
            assert client.get(f"{hub.url}/api/whoami-v2?{query.format(token)}").status_code == 400
    assert token not in hub.log


@pytest.mark.parametrize("query", ["search=access_token=", "my_access_token=x", "access_token_type=x", "a=%ff"])
def test_o47_similar_parameter_names_are_accepted(hub: RunningHub, query: str) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        assert client.get(f"{hub.url}/api/whoami-v2?{query}").status_code == 200


def test_o47_token_is_ignored_on_pages_and_in_bodies(hub: RunningHub) -> None:
    """Pages identify users by their cookie; for bodies see RFC 6750, section 2.2."""
    token = create_token(hub, create_user(hub, "ada"))
    with LeanClient(base_url=hub.url) as client:
        assert client.get(f"/settings/tokens?access_token={token}").status_code == 303
        assert client.request("GET", "/api/whoami-v2", data={"access_token": token}).status_code == 401
    assert token not in hub.log
