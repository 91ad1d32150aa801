"""W41: what an app learns from a webhook it takes over, and how the owner reclaims it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.app_webhooks import ACME_PATH, PATH, REPOS, WATCHED, AppWebhookScenario
from tests.bed.engines import Engine, settings_for
from tests.bed.organizations import entries_of
from tests.bed.people import api, browser_of, submit
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, secret_of

MINE = "https://example.org/mine"
MANAGED = "The app <bdi>Notebook</bdi> changed this webhook and manages it now."


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


@pytest.mark.one_engine
def test_w41_names_of_deleted_repos_are_not_shown_to_apps(hub: RunningHub) -> None:
    """They may have been private, and a name that does not exist yet may be a plan."""
    stage = AppWebhookScenario(hub)
    watched = ("user:ada", "model:ada/secret", "model:acme/secret", "model:ada/open", "dataset:ada/unborn")
    with api(hub, stage.token) as owner:
        mine = create_webhook(owner, MINE, *watched)
        gone = create_webhook(owner, MINE, "model:ada/secret")
        assert owner.request("DELETE", "/api/repos/delete", json={"name": "secret"}).status_code == 200
        assert len(owner.get(f"{PATH}/{mine['id']}").json()["webhook"]["watched"]) == 5, "its owner sees all"
    path = f"{PATH}/{mine['id']}"
    with api(hub, stage.grant("openid webhooks")) as app:
        shown = [one for one in app.get(PATH).json() if one["id"] == mine["id"]]
        shown += [app.get(path).json()["webhook"]]
        shown += [app.post(f"{path}/{how}").json()["webhook"] for how in ("disable", "enable")]
        shown += [app.post(path, json={"domains": ["repo"]}).json()["webhook"], app.get(path).json()["webhook"]]
        assert [[one["name"] for one in said["watched"]] for said in shown] == [["ada", "ada/open"]] * 6
        assert app.get(f"{PATH}/{gone['id']}").json()["webhook"]["watched"] == []
        refused = app.post(f"{PATH}/{gone['id']}", json={"domains": ["repo"]})
        assert (refused.status_code, "Choose what to watch" in refused.text) == (422, True)


@pytest.mark.one_engine
def test_w41_apps_own_watches_are_shown_as_it_named_them(hub: RunningHub) -> None:
    stage = AppWebhookScenario(hub)
    with api(hub, stage.grant("openid webhooks")) as app:
        made = create_webhook(app, MINE, "model:ada/unborn", "model:ada/SECRET")
        changed = app.post(f"{PATH}/{made['id']}", json={"domains": ["repo"]}).json()["webhook"]
    assert [one["name"] for one in changed["watched"]] == ["ada/unborn", "ada/SECRET"]


@pytest.mark.one_engine
def test_w41_owners_next_change_reclaims_a_webhook_with_an_unchanged_url(hub: RunningHub, receiver: Receiver) -> None:
    stage = AppWebhookScenario(hub)
    with api(hub, stage.token) as owner:
        mine = create_webhook(owner, receiver.url, *WATCHED)
    path, page = f"{PATH}/{mine['id']}", f"/settings/webhooks/{mine['id']}/settings"
    with api(hub, stage.grant("openid webhooks")) as app, browser_of(hub, stage.ada) as browser:
        taken = app.post(path, json={"domains": ["repo"], "secret": "known-to-the-app"})
        assert taken.status_code == 200
        assert stage.repos_received(receiver) == {"ada/open"}
        shown = browser.get(page).text
        assert MANAGED in shown
        assert "Save a change to take the webhook back." in shown
        watched = [{"type": kind, "name": name} for kind, _, name in (one.partition(":") for one in WATCHED)]
        with api(hub, stage.token) as owner:
            said = owner.post(path, json={"watched": watched}).json()["webhook"]
        assert said["hasSecret"] is False, "the app knew it"
        assert "Notebook" not in browser.get(page).text
        assert stage.repos_received(receiver) == set(REPOS)
        assert app.get(f"{path}/logs").status_code == 403
    assert stage.connected("DELETE").status_code == 204
    stage.check_grants()
    assert stage.state(mine) is False, "what becomes of the app is nothing to it"


@pytest.mark.one_engine
def test_w41_owner_reclaims_a_webhook_with_the_apps_url_by_changing_the_url(
    hub: RunningHub, receiver: Receiver
) -> None:
    """After any other change it stays the app's: it would send everything its owner may read to the app."""
    stage = AppWebhookScenario(hub)
    with api(hub, stage.token) as owner:
        mine = create_webhook(owner, MINE, *WATCHED)
    path, page = f"{PATH}/{mine['id']}", f"/settings/webhooks/{mine['id']}"
    with api(hub, stage.grant("openid webhooks")) as app:
        assert app.post(path, json={"url": receiver.url, "secret": "known-to-the-app"}).status_code == 200
        assert app.post(path, json={"domains": ["repo"]}).status_code == 200, "the address stays the app's"
    watched = [{"type": "org", "name": "acme"}, {"type": "user", "name": "ada"}]
    with api(hub, stage.token) as owner, browser_of(hub, stage.ada) as browser:
        changes = ({"ordered": True}, {"watched": watched}, {"secret": "another"}, {"url": receiver.url})
        for change in changes:
            assert owner.post(path, json=change).status_code == 200
            assert stage.repos_received(receiver) == {"ada/open"}, change
        shown = browser.get(f"{page}/settings").text
        assert MANAGED in shown
        assert "Save another address to take the webhook back." in shown
        receiver.received.clear()
        with run_receiver() as own:
            form = {"url": own.url, "watched": "user:ada\norg:acme", "domains": ["repo", "discussion"]}
            assert submit(browser, f"{page}/settings", **form).status_code == 303
            assert "Notebook" not in browser.get(f"{page}/settings").text
            assert stage.repos_received(own) == {"ada/open", "ada/secret", "acme/secret"}
            assert secret_of(hub, mine["id"]) is None
            assert "another" not in str([one.headers for one in own.received])
            assert receiver.received == []


def test_w41_secret_set_with_the_reclaiming_change_is_stored(hub: RunningHub) -> None:
    stage = AppWebhookScenario(hub)
    with api(hub, stage.token) as owner, api(hub, stage.grant("openid webhooks")) as app:
        mine = create_webhook(owner, MINE, "user:ada")
        app.post(f"{PATH}/{mine['id']}", json={"url": "https://app.example/hook", "secret": "known-to-the-app"})
        owner.post(f"{PATH}/{mine['id']}", json={"url": MINE, "secret": "the-owners", "overlapSeconds": 600})
        assert secret_of(hub, mine["id"]) == "the-owners"
        row = hub.call(lambda opened: opened.db.one("SELECT client_id, old_secret, reach FROM webhooks"))
        assert row is not None
        assert tuple(row) == (None, None, None)


@pytest.mark.one_engine
def test_w41_webhook_created_by_an_app_stays_the_apps(hub: RunningHub, receiver: Receiver) -> None:
    """No matter who changes it: a webhook created with a token never reports more than its grant.

    Also if another app changes it.
    """
    stage = AppWebhookScenario(hub)
    with api(hub, stage.grant("openid webhooks")) as app:
        made = create_webhook(app, "https://app.example/hook", *WATCHED)
    with api(hub, stage.token) as owner, browser_of(hub, stage.ada) as browser:
        assert owner.post(f"{PATH}/{made['id']}", json={"url": receiver.url}).status_code == 200
        assert stage.repos_received(receiver) == {"ada/open"}
        shown = browser.get(f"/settings/webhooks/{made['id']}").text
        assert "Created by the app <bdi>Notebook</bdi>. The webhook sends only what that app may read." in shown


@pytest.mark.one_engine
def test_w41_suspended_webhook_can_be_reclaimed_and_enabled(hub: RunningHub, receiver: Receiver) -> None:
    stage = AppWebhookScenario(hub)
    with api(hub, stage.token) as owner:
        mine = create_webhook(owner, MINE, "user:ada")
        path = f"{PATH}/{mine['id']}"
        with api(hub, stage.grant("openid webhooks")) as app:
            app.post(path, json={"url": "https://app.example/hook"})
        stage.connected("DELETE")
        assert stage.state(mine) == "suspended-after-failure"
        refused = owner.post(f"{path}/enable")
        assert (refused.status_code, "set another address" in refused.json()["error"]) == (409, True)
        assert owner.post(path, json={"url": receiver.url}).status_code == 200
        assert owner.post(f"{path}/enable").status_code == 200
    assert stage.repos_received(receiver) == {"ada/open", "ada/secret"}


@pytest.mark.one_engine
def test_w41_taking_over_and_reclaiming_are_in_the_audit_log(hub: RunningHub) -> None:
    stage = AppWebhookScenario(hub)
    with api(hub, stage.token) as admin, api(hub, stage.grant("openid webhooks", stage.acme)) as app:
        watched = [{"type": "org", "name": "acme"}]
        made = admin.post(ACME_PATH, json={"url": MINE, "watched": watched}).json()["webhook"]
        hub.clock.advance(1)
        assert app.post(f"{ACME_PATH}/{made['id']}", json={"ordered": False}).status_code == 200
        hub.clock.advance(1)
        assert admin.post(f"{ACME_PATH}/{made['id']}", json={"ordered": True}).status_code == 200
    log = [entry for entry in entries_of(hub, stage.acme) if entry["type"] == "webhook.update"]
    assert {entry["message"]: entry["data"].get("app") for entry in log} == {
        "took over the webhook to example.org with the app Notebook": stage.app.id,
        "reclaimed the webhook to example.org from the app Notebook": stage.app.id,
        "changed the webhook to example.org: ordered": None,
    }
