"""Each change of an organization's webhooks creates one audit entry: actor, change and host, and no secret."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.organizations import entries_of
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, settle

from hubgate.server.accounts.model import Organization, Owner
from hubgate.server.audit.model import Actor
from hubgate.server.errors import Forbidden
from hubgate.server.webhooks.management import activation, lifecycle
from hubgate.server.webhooks.management.lifecycle import WebhookRequest
from hubgate.server.webhooks.retention import deletion

pytestmark = pytest.mark.one_engine

PATH = "/api/organizations/acme/settings/webhooks"
WATCHED = [{"type": "org", "name": "acme"}]


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


def webhook_entries(hub: RunningHub, organization: Organization) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Actor, type, message and data of the entries about webhooks."""
    found = [entry for entry in entries_of(hub, organization) if entry["type"].startswith("webhook.")]
    return [(entry["author_name"], entry["type"], entry["message"], entry["data"]) for entry in found]


def test_every_change_is_logged_and_nothing_else(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as admin:

        def post(path: str, **body: Any) -> dict[str, Any]:
            hub.clock.advance(1)
            answer = admin.post(path, json=body)
            assert answer.status_code == 200, answer.text
            said: dict[str, Any] = answer.json()["webhook"]
            return said

        made = post(PATH, url="https://ci.example/hook?key=sesame", watched=WATCHED, secret="open")
        at, webhook = f"{PATH}/{made['id']}", made["id"]
        post(at, watched=[])
        post(at, watched=WATCHED, url=made["url"], domains=["repo", "discussion"])
        post(at, url="https://other.example:8443/", watched=[*WATCHED, {"type": "user", "name": "ada"}])
        post(at, domains=["repo"], ordered=True)
        post(at, secret="sesame-2", overlapSeconds=60)
        post(at, secret="sesame-2")
        post(at, secret="sesame-2", overlapSeconds=0)
        post(at, secret="sesame-2", overlapSeconds=60)
        post(at, secret="")
        post(at, secret="")
        for deed in ("disable", "disable", "enable", "enable"):
            post(f"{at}/{deed}")
        hub.clock.advance(1)
        assert admin.delete(at).status_code == 200
        create_webhook(admin, "https://mine.example/", "user:ada")
        here = {"webhook": webhook, "host": "other.example:8443"}
        there = "to other.example:8443"
        assert webhook_entries(hub, acme) == [
            (
                "ada",
                "webhook.create",
                "created the webhook to ci.example",
                {"webhook": webhook, "host": "ci.example"},
            ),
            (
                "ada",
                "webhook.update",
                "changed the webhook to ci.example: url, watched",
                {**here, "from": "ci.example", "changed": ["url", "watched"]},
            ),
            (
                "ada",
                "webhook.update",
                f"changed the webhook {there}: domains, ordered",
                {**here, "changed": ["domains", "ordered"]},
            ),
            ("ada", "webhook.set_secret", f"set the secret of the webhook {there}", {**here, "overlapSeconds": 60}),
            ("ada", "webhook.set_secret", f"set the secret of the webhook {there}", here),
            ("ada", "webhook.delete_secret", f"removed the secret of the webhook {there}", here),
            ("ada", "webhook.disable", f"disabled the webhook {there}", here),
            ("ada", "webhook.enable", f"enabled the webhook {there}", here),
            ("ada", "webhook.delete", f"deleted the webhook {there}", here),
        ]
        exported = admin.get("/api/organizations/acme/audit-log/export").text
        assert "other.example" in exported
        for secret in ("sesame", "open"):
            assert secret not in exported


def test_suspension_is_logged_for_the_hub_and_its_end_for_the_admin(hub: RunningHub, receiver: Receiver) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    receiver.status = 410
    with api(hub, create_token(hub, ada)) as admin, browser_of(hub, ada) as browser:
        webhook = admin.post(PATH, json={"url": receiver.url, "watched": WATCHED}).json()["webhook"]
        hub.clock.advance(1)
        create_repo(admin, "acme/tiny")
        settle(hub)
        hub.clock.advance(1)
        page = f"/organizations/acme/settings/webhooks/{webhook['id']}"
        submit(browser, page, f"{page}/enable")
    host = receiver.url.split("/")[2]
    assert [entry[:3] for entry in webhook_entries(hub, acme)[1:]] == [
        ("system", "webhook.suspend", f"suspended the webhook to {host}"),
        ("ada", "webhook.enable", f"enabled the webhook to {host}"),
    ]


def test_former_admin_changes_nothing(hub: RunningHub) -> None:
    """The permission is checked when the request is received, and again in the transaction of the change."""
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="write")
    owner, actor = Owner(org_id=acme.id), Actor("bob", bob.id)
    with api(hub, create_token(hub, ada)) as admin:
        webhook = admin.post(PATH, json={"url": "https://ci.example/", "watched": WATCHED}).json()["webhook"]
        wanted = WebhookRequest(url="https://evil.example/", watched=[("org", "acme")])
        for deed in (
            lambda opened: lifecycle.create(opened.webhooks, owner, wanted, actor),
            lambda opened: lifecycle.update(opened.webhooks, owner, webhook["id"], wanted, actor),
            lambda opened: activation.switch(opened.webhooks, owner, webhook["id"], actor, on=False),
            lambda opened: deletion.delete(opened.webhooks, owner, webhook["id"], actor),
        ):
            with pytest.raises(Forbidden):
                hub.call(deed)
        found: httpx.Response = admin.get(PATH)
        assert found.json() == [webhook]
    assert len(webhook_entries(hub, acme)) == 1
