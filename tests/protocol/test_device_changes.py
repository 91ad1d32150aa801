"""Changes between the start of a device flow, the decision and the next poll."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import pytest
from msgspec import structs
from tests.bed import devices
from tests.bed.apps import SCOPES, Client, create_app
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import Engine, settings_for
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import Page, api, browser_of, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.accounts import operator_actions
from hubgate.server.accounts.model import Owner, User
from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.apps import management, privileges
from hubgate.server.oauth.apps.model import App
from hubgate.server.scopes import Risk, Scope

ALL = " ".join(SCOPES)
CLI = "26be6b09-91c5-47da-9861-d2d2bb7a7e36"
PENDING, UNKNOWN = (400, "authorization_pending"), (400, "invalid_grant")
METRICS = "read-metrics"


def status_and_error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error", "a token")


def change(client: Client, how: Callable[[App], App]) -> None:
    client.hub.call(lambda opened: management.update(opened.oauth, client.app, how, SYSTEM))


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def client(hub: RunningHub) -> Client:
    return create_app(hub, create_user(hub, "olga"), name="Notebook", scopes=(*SCOPES, "manage-repos"))


@pytest.fixture
def approved(hub: RunningHub, client: Client, ada: User) -> str:
    """Returns the device code."""
    started = devices.start(client, scope=ALL)
    devices.approve(hub, ada, started["user_code"], ALL)
    return started["device_code"]


@pytest.mark.one_engine
def test_revoked_consent_ends_the_device_code(hub: RunningHub, client: Client, ada: User, approved: str) -> None:
    with api(hub, create_token(hub, ada)) as script:
        assert script.delete(f"/api/settings/connected-apps/{client.id}").is_success
    assert status_and_error(devices.poll(client, approved)) == UNKNOWN


@pytest.mark.one_engine
def test_token_has_what_is_left_of_the_consent(hub: RunningHub, client: Client, ada: User, approved: str) -> None:
    with api(hub, create_token(hub, ada)) as script:
        left = {"scopes": ["openid", "profile", "email"], "organizations": []}
        assert script.patch(f"/api/settings/connected-apps/{client.id}", json=left).is_success
    assert set(devices.poll(client, approved).json()["scope"].split()) == {"openid", "profile", "email"}


@pytest.mark.one_engine
def test_disabled_users_device_code_is_rejected(hub: RunningHub, client: Client, ada: User, approved: str) -> None:
    hub.call(lambda opened: operator_actions.disable(opened.accounts, ada))
    assert status_and_error(devices.poll(client, approved)) == UNKNOWN


@pytest.mark.one_engine
def test_decision_for_a_deleted_app_is_rejected(hub: RunningHub, client: Client, ada: User) -> None:
    started = devices.start(client)
    with browser_of(hub, ada) as browser:
        asked = devices.enter(browser, started["user_code"])
        hub.call(lambda opened: management.delete(opened.oauth, client.app, SYSTEM))
        assert devices.decide(browser, asked, "approve", scopes=SCOPES).status_code == 404
        assert devices.enter(browser, started["user_code"]).status_code == 404
    assert status_and_error(devices.poll(client, started["device_code"])) == (401, "invalid_client")


def test_device_request_during_the_deletion_of_the_app_fails_cleanly(hub: RunningHub) -> None:
    """Each succeeds or answers that the client is unknown; none fails otherwise."""
    olga = create_user(hub, "olga")
    with api(hub, create_token(hub, olga)) as script:
        for _ in range(6):
            doomed = create_app(hub, olga)
            start = partial(doomed.post, "/oauth/device", {"client_id": doomed.id})
            delete = partial(script.delete, f"/api/settings/applications/{doomed.id}")
            deleted, *answers = run_concurrently([delete, *[start] * 8])
            assert deleted.is_success
            assert {status_and_error(answer) for answer in answers} <= {(200, "a token"), (401, "invalid_client")}


@pytest.mark.one_engine
def test_renamed_app_is_shown_again_before_approval(hub: RunningHub, client: Client, ada: User) -> None:
    """The page is shown again with the new name; the approval of the old one grants nothing."""
    started = devices.start(client)
    with browser_of(hub, ada) as browser:
        asked = devices.enter(browser, started["user_code"])
        change(client, lambda app: structs.replace(app, name="Bank"))
        again = devices.decide(browser, asked, "approve", scopes=SCOPES)
        assert (again.status_code, "Bank" in again.text) == (200, True)
        assert status_and_error(devices.poll(client, started["device_code"])) == PENDING
        assert devices.decide(browser, again, "approve", scopes=SCOPES).status_code == 303
    assert devices.poll(client, started["device_code"]).status_code == 200


@pytest.mark.one_engine
def test_scope_that_the_app_lost_is_not_granted(hub: RunningHub, client: Client, ada: User) -> None:
    """A device flow that began while the app had the scope must not restore it."""
    started = devices.start(client)
    change(client, lambda app: structs.replace(app, scopes=SCOPES))
    with browser_of(hub, ada) as browser:
        asked = devices.enter(browser, started["user_code"])
        assert "manage-repos" not in asked.text
        assert devices.decide(browser, asked, "approve", scopes=[*SCOPES, "manage-repos"]).status_code == 303
    assert "manage-repos" not in devices.poll(client, started["device_code"]).json()["scope"]
    with api(hub, create_token(hub, ada)) as script:
        assert "manage-repos" not in script.get(f"/api/settings/connected-apps/{client.id}").json()["scopes"]


@pytest.mark.one_engine
def test_approval_after_expiry_is_rejected(hub: RunningHub, client: Client, ada: User) -> None:
    started = devices.start(client)
    with browser_of(hub, ada) as browser:
        asked = devices.enter(browser, started["user_code"])
        hub.clock.advance(901)
        assert devices.decide(browser, asked, "approve", scopes=SCOPES).status_code == 404
        assert client.id not in browser.get("/settings/connected").text, "nothing was allowed by that"


@pytest.mark.one_engine
def test_form_cannot_widen_the_request(hub: RunningHub, client: Client, ada: User) -> None:
    """As on the consent page (attack O37): only requested scopes, only the user's organizations."""
    foreign = create_organization(hub, "foreign", create_user(hub, "eve"))
    started = devices.start(client, scope="openid")
    with browser_of(hub, ada) as browser:
        asked = devices.enter(browser, started["user_code"])
        ticked = {"scopes": ["read-repos", "manage-repos", "fly"], "orgs": [foreign.id, "x"]}
        assert devices.decide(browser, asked, "approve", **ticked).status_code == 303
    assert devices.poll(client, started["device_code"]).json()["scope"] == "openid"


@pytest.mark.one_engine
def test_form_of_another_user_is_rejected(hub: RunningHub, client: Client, ada: User) -> None:
    started = devices.start(client)
    with browser_of(hub, ada) as hers, browser_of(hub, create_user(hub, "bob")) as his:
        seal = Page(devices.enter(hers, started["user_code"])).hidden()["shown"]
        form = {**Page(devices.enter(his, started["user_code"])).hidden(), "shown": seal, "decision": "approve"}
        assert his.post(devices.VERIFY, data=form).status_code == 200
    assert status_and_error(devices.poll(client, started["device_code"])) == PENDING


@pytest.mark.one_engine
def test_registration_of_a_configured_cli_takes_precedence(hub: RunningHub, client: Client, ada: User) -> None:
    """Its scopes, secret and lifetime apply, also to device flows that began before it."""
    with hub.client() as device:
        before = device.post("/oauth/device", data={"client_id": CLI}).json()
        draft = App(client_id=CLI, name="Ours", scopes=("openid",), confidential=True)
        owner = Owner(user_id=create_user(hub, "carol").id)
        registered = Client(hub, *hub.call(lambda opened: management.create(opened.oauth, owner, draft, SYSTEM)))
        assert status_and_error(device.post("/oauth/device", data={"client_id": CLI})) == (401, "invalid_client")
    assert devices.start(registered)
    with browser_of(hub, ada) as browser:
        asked = devices.enter(browser, before["user_code"])
        assert "manage-repos" not in asked.text
        assert devices.decide(browser, asked, "approve", scopes=["openid", "manage-repos"]).status_code == 303
    answer = devices.poll(registered, before["device_code"]).json()
    assert (answer["scope"], answer["expires_in"]) == ("openid", 28800)


@pytest.fixture
def with_metrics(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    """A hub whose operator defines a scope."""
    extra = (Scope(METRICS, Risk.PRIVATE, "See how the hub is used"),)
    with run_hub(replace(settings_for(engine.fresh_url(), tmp_path), extra_scopes=extra)) as found:
        yield found


def test_scope_that_the_operator_removes_is_not_granted(with_metrics: RunningHub) -> None:
    """Nor to waiting devices and exchanged tokens; a limit to that scope alone does not become unlimited."""
    hub = with_metrics
    ada = create_user(hub, "ada")
    client = create_exchange_app(hub, create_organization(hub, "acme", ada), scopes=("openid", "read-repos"))
    hub.call(lambda opened: privileges.grant_scope(opened.oauth, client.id, METRICS, SYSTEM))
    change(client, lambda app: structs.replace(app, exchange=structs.replace(app.exchange, scopes=(METRICS,))))
    started, token = devices.start(client), exchange_token(client, "ada@example.org")
    assert token["scope"] == METRICS
    hub.call(lambda opened: privileges.revoke_scope(opened.oauth, client.id, METRICS, SYSTEM))
    about = client.post("/oauth/introspect", {"token": token["access_token"]}).json()
    assert (about["active"], about["scope"]) == (True, "")
    assert exchange_token(client, "ada@example.org")["scope"] == "", "the limit was to nothing else"
    with browser_of(hub, ada) as browser:
        asked = devices.enter(browser, started["user_code"])
        assert METRICS not in asked.text
        devices.decide(browser, asked, "approve", scopes=["openid", "read-repos", METRICS])
    assert METRICS not in devices.poll(client, started["device_code"]).json()["scope"].split()
