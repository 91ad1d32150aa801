"""W41: a webhook that an app created reports only what the app's grant may read, while the grant exists."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.bed.app_webhooks import ACME_PATH, PATH, REPOS, SCOPES, WATCHED, AppWebhookScenario
from tests.bed.apps import Client, redirect_parameters, tokens_for
from tests.bed.background_delivery import deliver_in_background
from tests.bed.call_counts import calls_on_loop
from tests.bed.devices import approve as approve_device
from tests.bed.devices import poll, start
from tests.bed.engines import Engine, settings_for
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import api, browser_of, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, settle

from hubgate.server.accounts import operator_actions
from hubgate.server.accounts import store as accounts
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import members
from hubgate.server.accounts.organizations import store as organizations
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.apps import privileges
from hubgate.server.resources import Hub


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


@pytest.mark.one_engine
def test_w41_apps_webhook_reports_what_its_grant_may_read(hub: RunningHub, receiver: Receiver) -> None:
    stage = AppWebhookScenario(hub)
    for scope, granted, heard in (
        ("openid webhooks", [stage.acme], {"ada/open"}),
        ("openid webhooks read-repos", [], {"ada/open", "ada/secret"}),
        ("openid webhooks read-repos", [stage.acme], {"ada/open", "ada/secret", "acme/secret"}),
    ):
        with api(hub, stage.grant(scope, *granted)) as app:
            webhook = create_webhook(app, receiver.url, *WATCHED)
            assert stage.repos_received(receiver) == heard
            assert app.delete(f"{PATH}/{webhook['id']}").status_code == 200


@pytest.mark.one_engine
def test_w41_apps_webhook_is_limited_by_the_token_that_created_it(hub: RunningHub, receiver: Receiver) -> None:
    """The app may have more by other tokens; the webhook stays within the token it was created with."""
    stage = AppWebhookScenario(hub)
    stage.grant("openid read-repos webhooks", stage.acme)
    with browser_of(hub, stage.ada) as browser:
        code = redirect_parameters(browser.get(stage.app.address(scope="openid webhooks")))["code"]
    with api(hub, stage.app.redeem(code).json()["access_token"]) as app:
        create_webhook(app, receiver.url, *WATCHED)
    assert stage.repos_received(receiver) == {"ada/open"}


@pytest.mark.one_engine
def test_w41_revoked_app_leaves_a_suspended_webhook_and_a_notice(hub: RunningHub, receiver: Receiver) -> None:
    stage = AppWebhookScenario(hub)
    with api(hub, stage.grant("openid webhooks read-repos", stage.acme)) as app:
        webhook = create_webhook(app, receiver.url, *WATCHED)
    assert "acme/secret" in stage.repos_received(receiver)
    assert stage.connected("DELETE").status_code == 204
    assert stage.state(webhook) == "suspended-after-failure"
    assert stage.repos_received(receiver) == set()
    (mail,) = stage.mails()
    assert mail["subject"].startswith("Webhook suspended: 127.0.0.1:")
    assert "Notebook created this webhook and no longer has access" in mail.get_content()
    page = f"/settings/webhooks/{webhook['id']}"
    with api(hub, stage.token) as owner, browser_of(hub, stage.ada) as browser:
        refused = owner.post(f"{PATH}/{webhook['id']}/enable")
        assert (refused.status_code, "no longer has access" in refused.json()["error"]) == (409, True)
        assert "Suspended: the app <bdi>Notebook</bdi> created this webhook" in browser.get(page).text
        stage.grant("openid webhooks")
        assert owner.post(f"{PATH}/{webhook['id']}/enable").status_code == 200, "allowed again"
    assert stage.repos_received(receiver) == {"ada/open"}


@pytest.mark.one_engine
@pytest.mark.parametrize("how", ["scope", "organization", "membership", "app deleted", "webhooks scope"])
def test_w41_webhook_follows_every_reduction_of_its_grant(hub: RunningHub, receiver: Receiver, how: str) -> None:
    stage = AppWebhookScenario(hub)
    create_user(hub, "bob")
    with api(hub, stage.grant("openid webhooks read-repos", stage.acme)) as app:
        webhook = create_webhook(app, receiver.url, *WATCHED)
    assert stage.repos_received(receiver) == {"ada/open", "ada/secret", "acme/secret"}
    everything, suspended = {"ada/open", "ada/secret", "acme/secret"}, False
    if how == "scope":
        stage.connected("PATCH", scopes=["openid", "webhooks"])
        left = {"ada/open"}
    elif how == "organization":
        stage.connected("PATCH", organizations=[])
        left = everything - {"acme/secret"}
    elif how == "membership":
        leave_and_come_back(stage)
        left = everything - {"acme/secret"}
    elif how == "app deleted":
        hub.call(lambda opened: opened.db.write(lambda tx: tx.exec("DELETE FROM apps")))
        left, suspended = set(), True
    else:
        stage.connected("PATCH", scopes=["openid", "read-repos"])
        left, suspended = set(), True
    assert stage.repos_received(receiver) == left
    stage.check_grants()
    stage.check_grants()
    assert stage.state(webhook) == ("suspended-after-failure" if suspended else False)
    subjects = [mail["subject"] for mail in stage.mails()]
    said = "Webhook suspended: " if suspended else "Webhook sends fewer events: "
    assert [subject.startswith(said) for subject in subjects] == [True], "one notice for one change"


def leave_and_come_back(stage: AppWebhookScenario) -> None:
    hub, ada, acme = stage.hub, stage.ada, stage.acme

    async def work(opened: Hub) -> None:
        bob = await accounts.user_by_name(opened.db, "bob")
        assert bob is not None
        await opened.db.write(lambda tx: organizations.add_member(tx, acme.id, bob.id, Role.ADMIN, opened.clock()))
        await members.remove(opened.accounts, acme, ada, SYSTEM)
        await opened.db.write(lambda tx: organizations.add_member(tx, acme.id, ada.id, Role.ADMIN, opened.clock() + 1))

    hub.clock.advance(1)
    hub.call(work)


def test_w41_waiting_deliveries_are_not_sent_after_the_grant_was_reduced(hub: RunningHub, receiver: Receiver) -> None:
    stage = AppWebhookScenario(hub)
    with api(hub, stage.grant("openid webhooks read-repos", stage.acme)) as app:
        webhook = create_webhook(app, receiver.url, "org:acme")
    receiver.status = 500
    assert stage.repos_received(receiver) == {"acme/secret"}
    stage.connected("PATCH", organizations=[])
    receiver.received.clear()
    hub.clock.advance(3600)
    settle(hub)
    assert receiver.received == []
    with api(hub, stage.token) as owner:
        (log,) = owner.get(f"{PATH}/{webhook['id']}/logs").json()
        assert (log["state"], log["reason"]) == ("skipped", "forbidden")
        assert owner.post(f"{PATH}/{webhook['id']}/replay/{log['id']}").status_code == 403


@pytest.mark.one_engine
def test_w41_test_delivery_shows_no_repo_beyond_the_grant(hub: RunningHub, receiver: Receiver) -> None:
    stage = AppWebhookScenario(hub)
    with api(hub, stage.grant("openid webhooks", stage.acme)) as app:
        webhook = create_webhook(app, receiver.url, "org:acme", "model:acme/SECRET")
        assert [one["name"] for one in webhook["watched"]] == ["acme", "acme/SECRET"], "as it was typed"
        with deliver_in_background(hub):
            assert app.post(f"{PATH}/{webhook['id']}/test").json()["status"] == 200
    assert {one.json["repo"]["name"] for one in receiver.received} == {"acme/example"}


@pytest.mark.one_engine
def test_w41_app_that_changes_a_webhook_takes_it_over(hub: RunningHub, receiver: Receiver) -> None:
    """Otherwise it could have everything its user may read sent to its own URL."""
    stage = AppWebhookScenario(hub)
    with api(hub, stage.token) as owner:
        mine = create_webhook(owner, "https://example.org/mine", *WATCHED)
    with api(hub, stage.grant("openid webhooks")) as app:
        (listed,) = app.get(PATH).json()
        assert [one["name"] for one in listed["watched"]] == ["ada", "acme", "beta"], "no private repo is named"
        assert app.get(f"{PATH}/{mine['id']}").json()["webhook"] == listed
        assert app.get(f"{PATH}/{mine['id']}/logs").status_code == 403
        assert app.post(f"{PATH}/{mine['id']}", json={"url": receiver.url}).status_code == 200
    assert stage.repos_received(receiver) == {"ada/open"}


@pytest.mark.one_engine
def test_w41_app_that_takes_a_webhook_over_gets_neither_secret_nor_key(hub: RunningHub, receiver: Receiver) -> None:
    """With either it could sign deliveries to the user's own receiver."""
    stage = AppWebhookScenario(hub)
    with api(hub, stage.token) as owner:
        mine = create_webhook(owner, "https://example.org/mine", *WATCHED, secret="the-users-own-secret")
    with api(hub, stage.grant("openid webhooks")) as app:
        taken = app.post(f"{PATH}/{mine['id']}", json={"url": receiver.url}).json()["webhook"]
    assert taken["publicKey"] != mine["publicKey"]
    assert taken["hasSecret"] is False
    assert stage.repos_received(receiver) == {"ada/open"}
    assert "the-users-own-secret" not in str([one.headers for one in receiver.received])
    assert [mail["subject"].split(":")[0] for mail in stage.mails()] == ["Webhook changed by Notebook"]


def test_w41_webhook_of_a_disabled_account_pauses_and_resumes(hub: RunningHub, receiver: Receiver) -> None:
    stage = AppWebhookScenario(hub)
    bob = create_user(hub, "bob")
    with api(hub, tokens_for(stage.app, bob, scope="openid webhooks")["access_token"]) as app:
        create_webhook(app, receiver.url, "user:ada")
    hub.call(lambda opened: operator_actions.disable(opened.accounts, bob))
    assert stage.repos_received(receiver) == set()
    stage.check_grants()
    hub.call(lambda opened: operator_actions.enable(opened.accounts, bob))
    assert stage.repos_received(receiver) == {"ada/open"}


@pytest.mark.one_engine
def test_w41_webhook_created_without_an_app_is_not_limited(hub: RunningHub, receiver: Receiver) -> None:
    stage = AppWebhookScenario(hub)
    command_line = Client(hub, stage.app.app.__class__(client_id="hubgate-cli", name="CLI", redirect_uris=()), None)
    started = start(command_line, scope="openid webhooks")
    approve_device(hub, stage.ada, started["user_code"], "openid webhooks")
    token = poll(command_line, started["device_code"]).json()["access_token"]
    for credential in (stage.token, token):
        with api(hub, credential) as client:
            webhook = create_webhook(client, receiver.url, *WATCHED)
            assert stage.repos_received(receiver) == set(REPOS)
            client.delete(f"{PATH}/{webhook['id']}")


@pytest.mark.one_engine
def test_w41_contribute_repos_scope_reports_repos_the_app_created(hub: RunningHub, receiver: Receiver) -> None:
    stage = AppWebhookScenario(hub)
    with api(hub, stage.grant("openid webhooks contribute-repos", stage.acme)) as app:
        create_webhook(app, receiver.url, *WATCHED)
        create_repo(app, "acme/made", private=True)
        settle(hub)
        receiver.received.clear()
        create_commit(app, "acme/made", {"a.txt": b"1"})
    settle(hub)
    assert [one.json["repo"]["name"] for one in receiver.received] == ["acme/made"]
    assert stage.repos_received(receiver) == {"ada/open"}


def watching_acme(client: httpx.Client, receiver: Receiver) -> dict[str, str]:
    watched = [{"type": "org", "name": name} for name in ("acme", "beta")] + [{"type": "user", "name": "ada"}]
    answer = client.post(ACME_PATH, json={"url": receiver.url, "watched": watched})
    assert answer.status_code == 200, answer.text
    made: dict[str, str] = answer.json()["webhook"]
    return made


@pytest.mark.one_engine
def test_w41_organizations_webhook_is_limited_by_the_consent(hub: RunningHub, receiver: Receiver) -> None:
    stage = AppWebhookScenario(hub)
    with api(hub, stage.grant("openid webhooks", stage.acme)) as app:
        first = watching_acme(app, receiver)
        assert stage.repos_received(receiver) == {"ada/open"}
        assert app.delete(f"{ACME_PATH}/{first['id']}").status_code == 200
    with api(hub, stage.grant("openid webhooks read-repos", stage.acme)) as app:
        webhook = watching_acme(app, receiver)
    assert stage.repos_received(receiver) == {"ada/open", "acme/secret"}
    stage.connected("PATCH", organizations=[])
    assert stage.state(webhook, ACME_PATH) == "suspended-after-failure"
    assert stage.repos_received(receiver) == set()


@pytest.mark.one_engine
@pytest.mark.parametrize("how", ["privilege", "demoted"])
def test_w41_webhook_created_with_an_exchanged_token_depends_on_its_app(
    hub: RunningHub, receiver: Receiver, how: str
) -> None:
    stage = AppWebhookScenario(hub)
    create_user(hub, "bob")
    app = create_exchange_app(hub, stage.acme, scopes=SCOPES)
    token = exchange_token(app, "ada@example.org", scope="webhooks")["access_token"]
    wide = exchange_token(app, "ada@example.org", scope="webhooks read-repos")["access_token"]
    with api(hub, token) as client:
        narrow = watching_acme(client, receiver)
        assert stage.repos_received(receiver) == {"ada/open"}
        client.delete(f"{ACME_PATH}/{narrow['id']}")
    with api(hub, wide) as client:
        webhook = watching_acme(client, receiver)
    assert stage.repos_received(receiver) == {"ada/open", "acme/secret"}
    hub.call(lambda opened: take_away(opened, how, app, stage.acme, stage.ada))
    assert stage.repos_received(receiver) == set()
    stage.check_grants()
    if how == "privilege":
        assert stage.state(webhook, ACME_PATH) == "suspended-after-failure"


async def take_away(opened: Hub, how: str, app: Client, acme: Organization, ada: User) -> None:
    if how == "privilege":
        await privileges.set_exchange(opened.oauth, app.id, False, SYSTEM)
        return
    bob = await accounts.user_by_name(opened.db, "bob")
    assert bob is not None
    await opened.db.write(lambda tx: organizations.add_member(tx, acme.id, bob.id, Role.ADMIN, opened.clock()))
    await members.change_role(opened.accounts, acme, ada, Role.WRITE, SYSTEM)


@pytest.mark.one_engine
def test_w41_app_can_resume_its_webhook_after_a_pause(hub: RunningHub, receiver: Receiver) -> None:
    stage = AppWebhookScenario(hub)
    app = create_exchange_app(hub, stage.acme, scopes=SCOPES)
    with api(hub, exchange_token(app, "ada@example.org", scope="webhooks")["access_token"]) as client:
        webhook = watching_acme(client, receiver)
    settings = f"/api/organizations/acme/settings/applications/{app.id}"
    with api(hub, stage.token) as admin:
        assert admin.patch(settings, json={"paused": True}).status_code == 200
        stage.check_grants()
        assert stage.state(webhook, ACME_PATH) == "suspended-after-failure"
        assert admin.post(f"{ACME_PATH}/{webhook['id']}/enable").status_code == 409
        hub.clock.advance(60)
        assert admin.patch(settings, json={"paused": False}).status_code == 200
    with api(hub, exchange_token(app, "ada@example.org", scope="webhooks")["access_token"]) as client:
        assert client.post(f"{ACME_PATH}/{webhook['id']}", json={"ordered": True}).status_code == 200
        assert client.post(f"{ACME_PATH}/{webhook['id']}/enable").status_code == 200
    assert stage.repos_received(receiver) == {"ada/open"}


@pytest.mark.one_engine
def test_w41_tokens_of_one_app_do_not_mix_users(hub: RunningHub, receiver: Receiver) -> None:
    stage = AppWebhookScenario(hub)
    bob = create_user(hub, "bob")
    stage.grant("openid webhooks read-repos", stage.acme)
    with api(hub, tokens_for(stage.app, bob, scope="openid webhooks read-repos")["access_token"]) as app:
        create_webhook(app, receiver.url, *WATCHED)
    assert stage.repos_received(receiver) == {"ada/open"}


def test_w41_app_learns_nothing_private_from_its_users_webhook(hub: RunningHub, receiver: Receiver) -> None:
    """Neither by enabling or disabling it nor by taking it over: earlier deliveries were for the user."""
    stage = AppWebhookScenario(hub)
    with api(hub, stage.token) as owner:
        mine = create_webhook(owner, receiver.url, *WATCHED)
        hidden = create_webhook(owner, receiver.url, "model:beta/secret")
    assert stage.repos_received(receiver) == set(REPOS)
    path = f"{PATH}/{mine['id']}"
    with api(hub, stage.grant("openid webhooks")) as app:
        shown = [app.post(f"{path}/{how}").json()["webhook"] for how in ("disable", "enable")]
        shown += [app.post(path, json=change).json()["webhook"] for change in ({}, {"domains": ["repo"]})]
        shown += [app.get(path).json()["webhook"]]
        assert {str([one["name"] for one in said["watched"]]) for said in shown} == {"['ada', 'acme', 'beta']"}
        (log,) = app.get(f"{path}/logs").json()
        assert log["repo"]["name"] == "ada/open"
        with api(hub, stage.token) as owner:
            logs = {one["id"]: one["repo"]["name"] for one in owner.get(f"{path}/logs").json()}
        assert {logs[one]: app.get(f"{path}/logs/{one}").status_code for one in logs} == {
            name: 200 if name == "ada/open" else 404 for name in REPOS
        }
        refused = app.post(f"{PATH}/{hidden['id']}", json={"url": receiver.url})
        assert (refused.status_code, "Choose what to watch" in refused.text) == (422, True)


def test_w41_deliveries_are_shown_within_the_token_and_the_grant(hub: RunningHub, receiver: Receiver) -> None:
    stage = AppWebhookScenario(hub)
    wide = stage.grant("openid webhooks read-repos", stage.acme)
    with browser_of(hub, stage.ada) as browser:
        code = redirect_parameters(browser.get(stage.app.address(scope="openid webhooks")))["code"]
    narrow = stage.app.redeem(code).json()["access_token"]
    with api(hub, wide) as app:
        path = f"{PATH}/{create_webhook(app, receiver.url, *WATCHED)['id']}/logs"
    stage.repos_received(receiver)

    def logged(token: str) -> set[str]:
        with api(hub, token) as app:
            return {one["repo"]["name"] for one in app.get(path).json()}

    assert logged(wide) == {"ada/open", "ada/secret", "acme/secret"}
    assert logged(narrow) == {"ada/open"}, "another token of the same app"
    stage.connected("PATCH", organizations=[])
    assert logged(wide) == {"ada/open", "ada/secret"}, "the organization's grant was revoked"
    with api(hub, stage.token) as owner:
        assert owner.request("DELETE", "/api/repos/delete", json={"name": "secret"}).status_code == 200
    assert logged(wide) == {"ada/open", "ada/secret"}, "a repo that is gone is judged as it was"
    assert logged(narrow) == {"ada/open"}


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("limit", "left"),
    [
        ({"allowedScopes": ["webhooks", "profile"]}, {"ada/open"}),
        ({"allowedScopes": ["read-repos"]}, set()),
        ({"allowedRoles": ["read", "write"]}, set()),
        ({"scopes": ["openid", "webhooks"]}, {"ada/open"}),
    ],
)
def test_w41_organization_that_limits_token_exchange_limits_webhooks(
    hub: RunningHub, receiver: Receiver, limit: dict[str, list[str]], left: set[str]
) -> None:
    stage = AppWebhookScenario(hub)
    app = create_exchange_app(hub, stage.acme, scopes=SCOPES)
    with api(hub, exchange_token(app, "ada@example.org", scope="webhooks read-repos")["access_token"]) as client:
        webhook = watching_acme(client, receiver)
    assert stage.repos_received(receiver) == {"ada/open", "acme/secret"}
    with api(hub, stage.token) as owner:
        changed = owner.patch(f"/api/organizations/acme/settings/applications/{app.id}", json=limit)
        assert changed.status_code == 200, changed.text
    assert stage.repos_received(receiver) == left
    stage.check_grants()
    assert stage.state(webhook, ACME_PATH) == (False if left else "suspended-after-failure")
    said = "Webhook sends fewer events: " if left else "Webhook suspended: "
    assert [mail["subject"].startswith(said) for mail in stage.mails()] == [True]


def test_w41_grants_of_many_webhooks_are_read_in_one_query(hub: RunningHub) -> None:
    """Consents are read once for a hundred webhooks, not once for each."""
    stage = AppWebhookScenario(hub)
    with api(hub, stage.grant("openid webhooks read-repos", stage.acme)) as app:
        for number in range(9):
            create_webhook(app, f"https://example.org/{number}", *WATCHED)
    with calls_on_loop(hub) as calls:
        stage.check_grants()
    assert calls["consented"] < 9, "a coroutine that goes on counts again"
