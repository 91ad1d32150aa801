"""Mail: its contents, its delivery, and what happens when the server fails."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import Engine, settings_for
from tests.bed.mailserver import LOGIN, MailServer, Tls, mail_server
from tests.bed.people import create_organization, create_token, create_user
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.accounts import operator_actions
from hubgate.server.accounts.model import User
from hubgate.server.accounts.organizations import invitations
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.clock import iso
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

MINUTE, DAY = 60, 24 * 60 * 60
LOGIN_PART = "hub:p%40ss%20word@"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MailServer]:
    with mail_server(tmp_path) as server:
        yield server


@pytest.fixture
def with_mail(engine: Engine, tmp_path: Path) -> Callable[..., AbstractContextManager[RunningHub]]:
    """Hubs on one database that send their mail to this address."""
    url = engine.fresh_url()
    return lambda smtp_url, **given: run_hub(settings_for(url, tmp_path, smtp_url=smtp_url, **given))


@pytest.fixture
def hub(with_mail: Callable[..., AbstractContextManager[RunningHub]], server: MailServer) -> Iterator[RunningHub]:
    with with_mail(server.url()) as hub:
        yield hub


def send_due(hub: RunningHub) -> None:
    """Send waiting mail, as the background process does."""
    hub.call(lambda opened: opened.outbox.send_due())


def waiting(hub: RunningHub) -> list[bytes]:
    async def work(opened: Hub) -> list[bytes]:
        rows = await opened.db.read_long(lambda tx: tx.all("SELECT sealed FROM mails"))
        return [bytes(row["sealed"]) for row in rows]

    return hub.call(work)


def reset_link(hub: RunningHub, user: User) -> str:
    return hub.call(lambda opened: operator_actions.send_reset(opened.accounts, user))


def test_mail_is_sent(hub: RunningHub, server: MailServer) -> None:
    create_user(hub, "ada", verified=False)
    until(lambda: server.received)
    (received,) = server.received
    mail = received.mail
    assert (received.sender, received.recipient) == ("hubgate@[127.0.0.1]", "ada@example.org")
    assert (mail["From"], mail["To"], mail["Auto-Submitted"]) == (
        "hubgate@[127.0.0.1]",
        "ada@example.org",
        "auto-generated",
    )
    assert mail["Date"].datetime.timestamp() == hub.clock.now / 1_000_000
    assert re.fullmatch(r"<[0-9a-f]{24}@\[127\.0\.0\.1\]>", mail["Message-ID"])
    assert mail.get_content_type() == "text/plain"
    until(lambda: not waiting(hub))


def test_mails_have_the_documented_texts(hub: RunningHub, server: MailServer) -> None:
    ada = create_user(hub, "ada", verified=False)
    until(lambda: server.to("ada@example.org"))
    create_token(hub, bob := create_user(hub, "bob"), name="laptop")
    link = reset_link(hub, bob)
    acme = create_organization(hub, "acme", ada)
    hub.call(lambda opened: invitations.invite(opened.accounts, acme, "eve@example.org", Role.READ, SYSTEM))
    until(lambda: len(server.received) == 4)
    said = {received.mail["Subject"]: received.mail.get_content() for received in server.received}
    texts = {
        "Confirm your e-mail": f"Open {hub.url}/verify/SECRET within 24 hours. Not you? Ignore this.",
        "Reset your password": f"Open {hub.url}/reset/SECRET within 1 hour. Not you? Your password is unchanged.",
        "New token: laptop": f"Created {iso(hub.clock.now)} from 127.0.0.1. Not you? Revoke: {hub.url}/settings/tokens",
        "Join acme": f"system invites you to acme. Open {hub.url}/invitations/SECRET within 7 days. "
        "Not expected? Ignore this.",
    }
    assert set(said) == set(texts)
    for subject, text in texts.items():
        lines = re.sub(r"[A-Za-z0-9_-]{43}", "SECRET", said[subject]).splitlines()
        assert lines == [text, "", hub.url]
    assert link in said["Reset your password"]


@pytest.mark.parametrize("tls", ["starttls", "smtps"])
def test_mail_is_sent_encrypted_and_with_a_password(
    with_mail: Callable[..., AbstractContextManager[RunningHub]], tmp_path: Path, tls: Tls
) -> None:
    with mail_server(tmp_path, tls) as server, with_mail(server.url(login=LOGIN_PART)) as hub:
        create_user(hub, "ada", verified=False)
        until(lambda: server.received)
        assert (server.received[0].encrypted, server.received[0].user) == (True, LOGIN[0])
        until(lambda: not waiting(hub))


def test_wrong_password_retains_the_mail(
    with_mail: Callable[..., AbstractContextManager[RunningHub]], server: MailServer
) -> None:
    with with_mail(server.url(login="hub:wrong@")) as hub:
        create_user(hub, "ada", verified=False)
        until(lambda: "535" in hub.log)
        assert len(waiting(hub)) == 1
        assert "wrong" not in hub.log


# 127.1 is this machine too, but is not recognised as local by its name.
def test_certificate_of_a_remote_server_is_verified(
    with_mail: Callable[..., AbstractContextManager[RunningHub]], tmp_path: Path
) -> None:
    with mail_server(tmp_path, "starttls") as server, with_mail(server.url("127.1", LOGIN_PART)) as hub:
        create_user(hub, "ada", verified=False)
        until(lambda: "certificate verify failed" in hub.log)
        assert (server.received, server.logins, len(waiting(hub))) == ([], [], 1)


def test_password_is_never_sent_unencrypted(
    with_mail: Callable[..., AbstractContextManager[RunningHub]], server: MailServer
) -> None:
    with with_mail(server.url("127.1", LOGIN_PART)) as hub:
        create_user(hub, "ada", verified=False)
        until(lambda: "offers no encryption" in hub.log)
        assert (server.received, server.logins, len(waiting(hub))) == ([], [], 1)


def test_mail_is_sent_once_the_server_is_back(hub: RunningHub, server: MailServer) -> None:
    server.stop()
    create_user(hub, "ada", verified=False)
    for tries, pause in enumerate((30, 2 * MINUTE, 10 * MINUTE), 1):
        until(lambda tries=tries: hub.log.count("will be retried") == tries)
        hub.clock.advance(pause - 1)
        send_due(hub)
        assert hub.log.count("will be retried") == tries, "it is not tried before its time"
        hub.clock.advance(1)
        if tries < 3:
            send_due(hub)
    server.start()
    send_due(hub)
    send_due(hub)
    assert [received.recipient for received in server.received] == ["ada@example.org"]
    assert waiting(hub) == []


def test_unsent_mail_is_dropped_after_a_day(hub: RunningHub, server: MailServer) -> None:
    server.stop()
    create_user(hub, "ada", verified=False)
    until(lambda: "will be retried" in hub.log)
    hub.clock.advance(DAY)
    server.start()
    send_due(hub)
    assert (server.received, waiting(hub)) == ([], [])
    assert "was dropped: it could not be sent for a day" in hub.log


def test_permanently_rejected_recipient_does_not_delay_the_next(hub: RunningHub, server: MailServer) -> None:
    server.to_recipient["ada@example.org"] = 550
    create_user(hub, "ada", verified=False)
    create_user(hub, "bob", verified=False)
    until(lambda: "cannot be sent and was dropped: the recipient was refused with 550" in hub.log)
    until(lambda: waiting(hub) == [])
    assert [received.recipient for received in server.received] == ["bob@example.org"]
    assert "ada@example.org" not in hub.log


def test_temporarily_rejected_recipient_is_retried(hub: RunningHub, server: MailServer) -> None:
    server.to_recipient["ada@example.org"] = 451
    create_user(hub, "ada", verified=False)
    until(lambda: "refused with 451" in hub.log)
    server.to_recipient.clear()
    hub.clock.advance(30)
    send_due(hub)
    assert len(server.to("ada@example.org")) == 1


def test_mail_rejected_after_its_data_is_dropped(hub: RunningHub, server: MailServer) -> None:
    server.to_data = 554
    create_user(hub, "ada", verified=False)
    until(lambda: "was dropped: the mail was refused with 554" in hub.log)
    until(lambda: waiting(hub) == [])


def test_error_after_acceptance_does_not_send_twice(hub: RunningHub, server: MailServer) -> None:
    server.to_quit = 500
    create_user(hub, "ada", verified=False)
    until(lambda: server.received)
    until(lambda: waiting(hub) == [])
    hub.clock.advance(DAY)
    send_due(hub)
    assert len(server.received) == 1


def test_address_the_server_does_not_support_is_given_up(hub: RunningHub, server: MailServer) -> None:
    """The server does not support SMTPUTF8."""
    create_user(hub, "ada", verified=False)
    until(lambda: server.received)
    hub.call(lambda opened: invitations.invite_to_hub(opened.accounts, "jürgen@example.org"))
    until(lambda: "the server supports only ASCII addresses" in hub.log)
    until(lambda: waiting(hub) == [])


def test_headers_cannot_be_injected(hub: RunningHub, server: MailServer) -> None:
    ada = create_user(hub, "ada")
    create_token(hub, ada, name="laptop\r\nBcc: eve@example.org\r\n\r\nhello")
    until(lambda: server.received)
    (received,) = server.received
    assert received.mail["Subject"] == "New token: laptop Bcc: eve@example.org hello"
    assert received.mail["Bcc"] is None
    assert received.recipient == "ada@example.org"


def test_concurrent_senders_send_each_mail_once(
    with_mail: Callable[..., AbstractContextManager[RunningHub]], server: MailServer
) -> None:
    server.stop()
    with with_mail(server.url()) as one, with_mail(server.url()) as other:
        for number in range(12):
            create_user(one, f"user{number}", verified=False)
        until(lambda: one.log.count("will be retried") >= 12)
        server.start()
        for hub in (one, other):
            hub.clock.advance(30)
        run_concurrently([partial(send_due, hub) for hub in (one, other, one, other)])
        sent = [received.recipient for received in server.received]
        assert sorted(sent) == sorted(f"user{number}@example.org" for number in range(12))
        assert waiting(one) == []


def test_waiting_mail_is_sealed(hub: RunningHub, server: MailServer) -> None:
    server.stop()
    link = reset_link(hub, create_user(hub, "ada"))
    until(lambda: "will be retried" in hub.log)
    (sealed,) = waiting(hub)
    for secret in (link, link.rpartition("/")[2], "ada@example.org"):
        assert secret.encode() not in sealed
        assert secret not in hub.log


def test_mail_sealed_under_a_lost_key_is_dropped(
    with_mail: Callable[..., AbstractContextManager[RunningHub]], server: MailServer
) -> None:
    server.stop()
    with with_mail(server.url()) as hub:
        create_user(hub, "ada", verified=False)
        until(lambda: "will be retried" in hub.log)
    server.start()
    with with_mail(server.url(), secret_key="another secret of more than thirty-two characters") as hub:
        hub.clock.advance(30)
        send_due(hub)
        assert "was dropped: it was sealed with a key that is no longer configured" in hub.log
        assert (server.received, waiting(hub)) == ([], [])


def test_hanging_server_does_not_delay_sign_ins(hub: RunningHub, server: MailServer) -> None:
    """Passwords are checked in a thread pool, which a hanging server could otherwise exhaust."""
    server.is_answering.clear()
    for number in range(40):
        create_user(hub, f"user{number}", verified=False)
    until(lambda: server.received)
    assert len(server.received) == 1, "one mail at a time"
    server.is_answering.set()
    until(lambda: waiting(hub) == [])
    assert len(server.received) == 40


def test_without_a_server_mail_is_written_to_private_files(engine: Engine, tmp_path: Path) -> None:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, mail_from="Our hub <hub@example.org>")) as hub:
        link = reset_link(hub, create_user(hub, "ada"))
        folder = tmp_path / "mail"
        until(lambda: list(folder.glob("*.eml")))
        (file,) = folder.iterdir()
        assert (file.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
        text = file.read_text()
        assert f"Open {link} within 1 hour." in text, "whole, so that it can be copied"
        assert "\nFrom: Our hub <hub@example.org>\n" in f"\n{text}"
        assert text.endswith(f"\n\n{hub.url}\n")
