"""Mail to the owners of a failing webhook: once half-way and once at the suspension."""

from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_organization, create_token, create_user, mails_to, wait_for_mail
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, settle

pytestmark = pytest.mark.one_engine

PATH = "/api/settings/webhooks"
HOUR = 3600


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        started.status = 500
        yield started


def pass_time(hub: RunningHub, seconds: int) -> None:
    """Send everything that is due, mail included, as the loops of the background process do."""
    settle(hub)
    hub.call(lambda opened: opened.outbox.send_due())
    hub.clock.advance(seconds)


def webhook_mails(hub: RunningHub, name: str) -> list[EmailMessage]:
    wait_for_mail(hub)
    return [mail for mail in mails_to(hub, f"{name}@example.org", 0) if mail["Subject"].startswith("Webhook ")]


def test_one_mail_is_sent_half_way_and_one_at_the_suspension(hub: RunningHub, receiver: Receiver) -> None:
    """To its user, or to the admins of its organization, except those without a usable address."""
    ada, bob, _ = (create_user(hub, name, verified=name != "carl") for name in ("ada", "bob", "carl"))
    create_organization(hub, "acme", ada, bob="write", carl="admin")
    with api(hub, create_token(hub, ada)) as admin, api(hub, create_token(hub, bob)) as writer:
        create_webhook(writer, f"{receiver.url}?q='%0d%0aBcc:%20eve@example.org", "user:bob")
        body = {"url": receiver.url, "watched": [{"type": "user", "name": "bob"}]}
        of_acme = admin.post("/api/organizations/acme/settings/webhooks", json=body).json()["webhook"]
        for number in range(21):
            # Two at a time, so that two failures are at each threshold.
            for letter in "ab":
                create_repo(writer, f"r{number}{letter}")
            pass_time(hub, 6 * HOUR)
        for name, link in (
            ("ada", f"{hub.url}/organizations/acme/settings/webhooks/{of_acme['id']}"),
            ("bob", f"{hub.url}/settings/webhooks/"),
        ):
            warned, suspended = webhook_mails(hub, name)
            host = receiver.url.split("/")[2]
            assert warned["Subject"] == f"Webhook failing: {host}"
            assert suspended["Subject"] == f"Webhook suspended: {host}"
            for mail in (warned, suspended):
                assert link in mail.get_content()
                assert mail.get_all("To") == [f"{name}@example.org"]
                assert mail["Bcc"] is None
                assert mail["Cc"] is None
                assert "eve@example.org" not in mail.as_string()
            assert "last answer 500" in warned.get_content()
        assert webhook_mails(hub, "carl") == []
        found = writer.get(PATH).json()[0]
        assert found["disabled"] == "suspended-after-failure"
        received = len(receiver.received)
        create_repo(writer, "silent")
        settle(hub)
        assert len(receiver.received) == received


def test_success_resets_the_failure_period(hub: RunningHub, receiver: Receiver) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        webhook = create_webhook(ada, receiver.url, "user:ada")
        for number in range(24):
            create_repo(ada, f"r{number}")
            pass_time(hub, 6 * HOUR)
            receiver.status = 200 if number == 8 else 500
        assert [mail["Subject"].split(":")[0] for mail in webhook_mails(hub, "ada")] == ["Webhook failing"]
        assert ada.get(f"{PATH}/{webhook['id']}").json()["webhook"]["disabled"] is False
