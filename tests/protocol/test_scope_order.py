"""`scope` in every token response and in introspection is in the order the app requested."""

import pytest
from tests.bed import devices
from tests.bed.apps import Client, approve, create_app, redirect_parameters, tokens_for
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import browser_of, create_organization, create_user
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

ORDER = "openid profile email read-repos"


@pytest.fixture
def client(hub: RunningHub) -> Client:
    return create_app(hub, create_user(hub, "olga"), refresh_tokens=True)


def introspected(client: Client, token: str) -> object:
    return client.post("/oauth/introspect", {"token": token}).json()["scope"]


def refreshed(client: Client, token: str, **more: str) -> dict[str, str]:
    body: dict[str, str] = client.post(
        "/oauth/token", {"grant_type": "refresh_token", "refresh_token": token, **more}
    ).json()
    return body


def test_code_and_refresh(hub: RunningHub, client: Client) -> None:
    ada = create_user(hub, "ada")
    for scope in (ORDER, "email read-repos openid"):
        first = tokens_for(client, ada, scope=scope)
        assert first["scope"] == scope
        assert introspected(client, first["access_token"]) == introspected(client, first["refresh_token"]) == scope
        narrowed = refreshed(client, first["refresh_token"], scope="openid email")
        assert narrowed["scope"] == "openid email"
        assert introspected(client, narrowed["access_token"]) == "openid email"
        assert refreshed(client, narrowed["refresh_token"])["scope"] == scope, "the order of the first response"


def test_unticked_scopes_leave_the_others_in_order(hub: RunningHub, client: Client) -> None:
    with browser_of(hub, create_user(hub, "ada")) as browser:
        sent = approve(browser, client.address(scope="profile read-repos openid email"), scopes=[])
    assert client.redeem(redirect_parameters(sent)["code"]).json()["scope"] == "profile openid email"


def test_device(hub: RunningHub, client: Client) -> None:
    started = devices.start(client, scope=ORDER)
    devices.approve(hub, create_user(hub, "ada"), started["user_code"], ORDER)
    tokens = devices.poll(client, started["device_code"]).json()
    assert tokens["scope"] == ORDER
    assert refreshed(client, tokens["refresh_token"])["scope"] == ORDER


def test_exchange(hub: RunningHub) -> None:
    exchanger = create_exchange_app(hub, create_organization(hub, "acme", create_user(hub, "ada")))
    token = exchange_token(exchanger, "ada@example.org", scope=ORDER)
    assert token["scope"] == introspected(exchanger, token["access_token"]) == ORDER
