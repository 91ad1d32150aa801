"""W41: a webhook that a fine-grained token created reports only what the token may read, until the token ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import (
    api,
    browser_of,
    create_limited_token,
    create_organization,
    create_token,
    create_user,
    submit,
)
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, settle

from hubgate.server.accounts.tokens.expiry import TokenExpiry
from hubgate.server.accounts.tokens.limits import ORG, REPO, NewLimit, own_account
from hubgate.server.clock import DAY, SECOND
from hubgate.server.resources import Hub
from hubgate.server.webhooks.permissions.grants import GrantChecks

PATH = "/api/settings/webhooks"
REPOS = ("ada/chosen", "ada/secret", "acme/secret", "ada/open")


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


class Scenario:
    """A user with private repos, some in an organization, who creates a webhook with a token for one of them."""

    def __init__(self, hub: RunningHub, receiver: Receiver) -> None:
        self.hub, self.receiver, self.edits = hub, receiver, 0
        self.ada = create_user(hub, "ada")
        acme = create_organization(hub, "acme", self.ada)
        self.write_token = create_token(hub, self.ada)
        with api(hub, self.write_token) as owner:
            for name in REPOS:
                create_repo(owner, name, private=not name.endswith("open"))
            chosen = owner.get("/api/models/ada/chosen").json()["_id"]
        self.text, self.token = create_limited_token(
            hub,
            self.ada,
            places=[
                own_account(self.ada, ["webhooks"]),
                NewLimit(REPO, chosen, self.ada.id, frozenset({"read-repos"})),
                NewLimit(ORG, acme.id, acme.id, frozenset({"jobs"})),
            ],
            expires_at=hub.clock() + 2 * DAY,
            name="hooks",
        )

    def repos_received(self) -> set[str]:
        """Change every repo; the repos for which the receiver got events."""
        self.receiver.received.clear()
        self.edits += 1
        with api(self.hub, self.write_token) as owner:
            for name in REPOS:
                create_commit(owner, name, {"a.txt": str(self.edits).encode()})
        settle(self.hub)
        return {each.json["repo"]["name"] for each in self.receiver.received}

    def check(self) -> None:
        """Run the background jobs that mark expired tokens and check webhooks."""

        async def work(opened: Hub) -> None:
            await TokenExpiry(opened.accounts).step()
            await GrantChecks(opened.webhooks).step()

        self.hub.call(work)


@pytest.mark.parametrize("ended_by", ["revocation", "expiry"])
def test_w41_webhook_stays_within_the_limits_of_its_token(hub: RunningHub, receiver: Receiver, ended_by: str) -> None:
    stage = Scenario(hub, receiver)
    with api(hub, stage.text) as client, browser_of(hub, stage.ada) as browser:
        webhook = create_webhook(client, receiver.url, "user:ada", "org:acme")
        page = f"/settings/webhooks/{webhook['id']}"
        assert stage.repos_received() == {"ada/chosen", "ada/open"}
        logged = client.get(f"{PATH}/{webhook['id']}/logs").json()
        assert {each["repo"]["name"] for each in logged} == {"ada/chosen", "ada/open"}
        stage.check()
        assert "Created by the token <bdi>hooks</bdi>" in browser.get(page).text
        assert "Suspended" not in browser.get(page).text
        if ended_by == "revocation":
            submit(browser, f"/settings/tokens/{stage.token.id}/revoke")
            assert stage.repos_received() == set()
        else:
            hub.clock.advance(2 * DAY // SECOND)
        stage.check()
        assert stage.repos_received() == set()
        assert "Suspended: the token" in browser.get(page).text
        with api(hub, stage.write_token) as owner:
            refused = owner.post(f"{PATH}/{webhook['id']}/enable")
            assert "The token that created this webhook no longer has access." in refused.text
            if ended_by == "expiry":
                submit(browser, f"/settings/tokens/{stage.token.id}/refresh")
                assert owner.post(f"{PATH}/{webhook['id']}/enable").status_code == 200
                assert stage.repos_received() == {"ada/chosen", "ada/open"}


@pytest.mark.one_engine
def test_w41_token_sees_neither_deliveries_nor_private_names_of_other_webhooks(
    hub: RunningHub, receiver: Receiver
) -> None:
    stage = Scenario(hub, receiver)
    with api(hub, stage.write_token) as owner, api(hub, stage.text) as client:
        webhook = create_webhook(owner, receiver.url, "user:ada", "model:acme/secret")
        (shown,) = client.get(PATH).json()
        assert [watch["name"] for watch in shown["watched"]] == ["ada"]
        for path in ("logs", "events"):
            assert client.get(f"{PATH}/{webhook['id']}/{path}").status_code == 403
