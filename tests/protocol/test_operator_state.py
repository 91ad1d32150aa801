"""What the operator sees of the hub's state: disk, database, signing keys and mail, with a test mail."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from html import unescape
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.mailserver import mail_server
from tests.bed.people import browser_of, create_user, mails_to, post, submit
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.storage.disk_usage import measure
from hubgate.server.storage.engines import engine_of

MAIL = "/operator/mail"
TEST = f"{MAIL}/test"
OpenHub = Callable[[str], AbstractContextManager[RunningHub]]


@pytest.fixture
def open_hub(engine: Engine, tmp_path: Path) -> OpenHub:
    """Starts a hub with the given mail server."""
    url = engine.fresh_url()
    return lambda smtp_url: run_hub(settings_for(url, tmp_path, smtp_url=smtp_url))


@pytest.fixture
def operator(hub: RunningHub) -> Iterator[httpx.Client]:
    with browser_of(hub, create_user(hub, "olga", operator=True)) as client:
        yield client


def text_of(page: httpx.Response) -> str:
    main = page.text.partition("<main")[2].partition("</main>")[0].partition(">")[2]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", main.replace("<wbr>", ""))).split())


def test_overview_shows_database_and_disk(hub: RunningHub, operator: httpx.Client, engine: Engine) -> None:
    (hub.settings.data_dir / "repos").mkdir(exist_ok=True)
    shown = text_of(operator.get("/operator"))
    kind = engine_of(engine.fresh_url()).name
    assert re.search(rf"Database {kind} [\d.]+, [\d.]+ [kM]B ", shown)
    assert re.search(r"Used [\d.]+ \S+ Free [\d.]+ [MGT]B of [\d.]+ [MGT]B ", shown)
    assert "repos/" in shown


@pytest.mark.one_engine
def test_requests_come_first_on_the_overview(operator: httpx.Client) -> None:
    headings = re.findall(r"<h2>([^<]+)</h2>", operator.get("/operator").text)
    assert headings == ["Waiting requests", "Deliveries", "Storage", "Signing keys", "Accounts"]


@pytest.mark.one_engine
def test_overview_shows_the_age_of_signing_keys(hub: RunningHub, operator: httpx.Client) -> None:
    (first,) = hub.call(lambda opened: opened.keys.list_all())
    assert f"{first.kid} RS256 RS256 ● Signs " in text_of(operator.get("/operator"))
    hub.clock.advance(3 * 24 * 3600)
    fresh = hub.call(lambda opened: opened.keys.rotate())
    shown = text_of(operator.get("/operator"))
    assert re.search(rf"{fresh.kid} RS256 RS256 ↻ Signs later [-\d]+ [:\d]+ UTC no end", shown)
    assert re.search(rf"{first.kid} RS256 RS256 ● Signs [-\d]+ [:\d]+ UTC 3 days old", shown)
    assert shown.index(fresh.kid) < shown.index(first.kid)
    # Keys that no recipient accepts any more are left out.
    hub.call(lambda opened: opened.keys.revoke(first.kid))
    assert first.kid not in operator.get("/operator").text


@pytest.mark.one_engine
def test_test_mail_without_a_server_is_written_to_a_file(hub: RunningHub, operator: httpx.Client) -> None:
    assert "Mail is written to files and reaches nobody." in text_of(operator.get(MAIL))
    assert submit(operator, MAIL, TEST).status_code == 303
    assert "Wrote the test to " in text_of(operator.get(MAIL))
    (mail,) = mails_to(hub, "olga@example.org")
    assert mail["Subject"] == "Test mail"


@pytest.mark.one_engine
def test_test_mail_is_sent_to_the_operators_own_address(open_hub: OpenHub, tmp_path: Path) -> None:
    with mail_server(tmp_path) as server, open_hub(server.url()) as hub:
        operator = create_user(hub, "olga", operator=True)
        with browser_of(hub, operator) as client:
            page = client.get(MAIL)
            assert f"Server smtp://127.0.0.1:{server.port} From " in text_of(page)
            assert "hub:" not in page.text, "the user and the password are not shown"
            assert submit(client, MAIL, TEST, email="mallory@example.org").status_code == 303
            assert f"127.0.0.1:{server.port} accepted the test to olga@example.org." in text_of(client.get(MAIL))
        assert [(one.recipient, one.mail["Subject"]) for one in server.received] == [("olga@example.org", "Test mail")]


@pytest.mark.one_engine
def test_failure_of_the_test_mail_names_the_cause(open_hub: OpenHub, tmp_path: Path) -> None:
    with mail_server(tmp_path) as server, open_hub(f"smtp://127.0.0.1:{server.port}") as hub:
        server.to_data = 554
        with browser_of(hub, create_user(hub, "olga", operator=True)) as client:
            failed = submit(client, MAIL, TEST)
            assert failed.status_code == 502
            assert "The test was not sent: the mail was refused with 554." in text_of(failed)
            # It is not retried later.
            assert "Waiting 0 " in text_of(client.get(MAIL))


@pytest.mark.one_engine
def test_test_mails_are_limited(operator: httpx.Client) -> None:
    statuses = [submit(operator, MAIL, TEST).status_code for _ in range(6)]
    assert statuses == [303] * 5 + [429]


@pytest.mark.one_engine
def test_only_operators_send_test_mail(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        assert client.get(MAIL).status_code == 403
        assert post(client, TEST).status_code == 403
    with browser_of(hub, create_user(hub, "olga", operator=True)) as client:
        assert client.post(TEST).status_code == 403, "without the CSRF field"


def test_measuring_a_large_folder_stops(tmp_path: Path) -> None:
    for name in ("repos", "lfs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "content").write_bytes(b"x" * 100_000)
    whole = measure(tmp_path)
    assert whole.is_complete
    assert whole.used >= 200_000
    assert {part.name for part in whole.parts} == {"repos/", "lfs/"}
    begun = measure(tmp_path, seconds=0)
    assert not begun.is_complete
    assert begun.used < 200_000
