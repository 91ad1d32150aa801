"""O77: a route whose handler checks nothing is still guarded; a route without an action cannot be built."""

import pytest
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, post
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.testbuild import bare_route

from hubgate.server.access.actions import Action
from hubgate.server.access.resource import Account, Organization
from hubgate.server.edge.routes import OWN_ACCOUNT, THE_HUB, Endpoint, Locator
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest


@pytest.mark.one_engine
def test_o77_unchecked_organization_handler_runs_for_admins_only(hub: RunningHub) -> None:
    """The route declares `org.write_members`; its handler, in tests/bed/testbuild.py, checks nothing."""
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_user(hub, "eve")
    create_organization(hub, "acme", ada, bob="write")
    at = "/api/test/organizations/acme/careless"
    with hub.client() as anonymous:
        assert anonymous.post(at).status_code == 401
    with api(hub, create_token(hub, bob)) as member:
        assert member.post(at).status_code == 403
    with api(hub, create_token(hub, ada, "read")) as reader:
        assert reader.post(at).status_code == 403
    with api(hub, create_token(hub, ada)) as admin:
        assert admin.post(at).json() == {"changed": "acme"}


@pytest.mark.one_engine
def test_o77_unchecked_repo_handler_runs_for_writers_only(hub: RunningHub) -> None:
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    at = "/api/test/careless/ada/tiny"
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, eve)) as stranger:
        create_repo(owner, "tiny", private=True)
        hidden, missing = stranger.post(at), stranger.post("/api/test/careless/ada/absent")
        assert (hidden.status_code, hidden.json()) == (missing.status_code, missing.json()) == (404, hidden.json())
        assert owner.post(at).json() == {"changed": "ada/tiny"}
    with hub.client() as anonymous:
        assert anonymous.post(at).status_code == 401


@pytest.mark.one_engine
def test_o77_unchecked_page_runs_for_operators_only(hub: RunningHub) -> None:
    at = "/oauth/test/careless"
    with browser_of(hub, create_user(hub, "eve")) as stranger:
        assert post(stranger, at).status_code == 403
    with browser_of(hub, create_user(hub, "olga", operator=True)) as operator:
        assert post(operator, at).json() == {"changed": "all"}


async def careless(_: HubRequest, __: object) -> JsonResponse:
    return JsonResponse({})


def test_o77_route_cannot_have_a_bare_handler() -> None:
    with pytest.raises(TypeError, match=r"POST /api/test/bare takes an Endpoint"):
        bare_route()


def test_o77_endpoint_needs_an_action_and_a_locator() -> None:
    with pytest.raises(TypeError, match="needs a Locator"):
        Endpoint(Action.ORG_WRITE_MEMBERS, careless, careless)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="needs an Action"):
        Endpoint("org.write_members", THE_HUB, careless)  # type: ignore[arg-type]


def test_o77_action_must_match_the_kind_of_resource() -> None:
    with pytest.raises(TypeError, match="does not apply to the resources"):
        Endpoint(Action.ORG_WRITE_MEMBERS, OWN_ACCOUNT, careless)
    either = Locator((Account, Organization), OWN_ACCOUNT.find)
    with pytest.raises(TypeError, match="does not apply to Organization"):
        Endpoint(Action.ACCOUNT_WRITE_SETTINGS, either, careless)


@pytest.mark.one_engine
def test_o77_locator_cannot_choose_an_undeclared_action(hub: RunningHub) -> None:
    """The answer is 500, rather than a decision by a weaker rule."""
    with api(hub, create_token(hub, create_user(hub, "eve"))) as client:
        assert client.get("/api/test/undeclared").status_code == 500
