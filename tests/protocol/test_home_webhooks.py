"""`/` lists the webhooks that need attention, the worst first, distinguishable, and how many more there are."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, settle
from tests.protocol.test_webhook_charts import roll_up

pytestmark = pytest.mark.one_engine

OWN, ACMES = "/settings/webhooks", "/organizations/acme/settings/webhooks"


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def slow() -> Iterator[Receiver]:
    """Fails, and is retried."""
    with run_receiver() as started:
        started.status = 500
        yield started


@pytest.fixture
def gone() -> Iterator[Receiver]:
    """Answers 410, which suspends a webhook at once."""
    with run_receiver() as started:
        started.status = 410
        yield started


def test_worst_webhooks_are_listed_first_with_the_number_of_others(
    hub: RunningHub, slow: Receiver, gone: Receiver
) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as program, browser_of(hub, ada) as browser:

        def shown() -> tuple[list[str], list[tuple[str, str]]]:
            """The cards, and the links below that lead to more."""
            page = browser.get("/").text
            cards = re.findall(r'<div class="note note-\w+ row">\n<span>(.*?)</span>\n<a', page, re.DOTALL)
            more = re.findall(r'<a href="([^"]+)">(\d+ more webhook.*?)</a>', page)
            assert "hush" not in page, "the rest of an address may be a secret"
            return [_plain(card) for card in cards], [(address, _plain(text)) for address, text in more]

        create_webhook(program, f"{slow.url}/slow?key=hush", "user:ada")
        create_repo(program, "first")
        settle(hub)
        hub.clock.advance(2 * 3600)
        host, other = slow.url.split("/")[2], gone.url.split("/")[2]
        assert shown() == ([f"Webhook failing: {host}/hook/slow"], [])
        paths = ["?key=hush", "/b?key=hush", f"/{'c' * 60}", *(f"/own-{number}" for number in range(3))]
        for path in paths:
            hub.clock.advance(1)
            create_webhook(program, gone.url + path, "user:ada")
        for number in range(3):
            hub.clock.advance(1)
            body = {"url": f"{gone.url}/acmes-{number}", "watched": [{"type": "user", "name": "ada"}]}
            assert program.post(f"/api{ACMES}", json=body).status_code == 200
        create_repo(program, "second")
        settle(hub)
        cards, more = shown()
        assert cards == [
            f"Webhook suspended: {other}/hook",
            f"Webhook suspended: {other}/hook/b",
            f"Webhook suspended: {other}/hook/{'c' * 33}…",
            f"Webhook suspended: {other}/hook/own-0",
            f"Webhook suspended: {other}/hook/own-1",
        ]
        assert more == [(OWN, "2 more webhooks"), (ACMES, "3 more webhooks of acme")]
        # A deleted one makes room for the next.
        for webhook in program.get(f"/api{OWN}").json()[1:]:
            assert program.delete(f"/api{OWN}/{webhook['id']}").status_code == 200
        cards, more = shown()
        assert cards == [
            *(f"Webhook suspended: {other}/hook/acmes-{number} of acme" for number in range(3)),
            f"Webhook failing: {host}/hook/slow",
        ]
        assert more == []


def test_busiest_webhooks_of_the_user_and_administered_organizations_are_shown(hub: RunningHub, slow: Receiver) -> None:
    slow.status = 200
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as program, browser_of(hub, ada) as browser:
        assert "Your webhooks" not in browser.get("/").text
        for number in range(6):
            create_webhook(program, f"{slow.url}/{number}", "org:acme")
        busy = create_webhook(program, slow.url, "user:ada")
        hub.clock.advance(1)
        create_organization(hub, "acme", ada)
        body = {"url": f"{slow.url}/acmes", "watched": [{"type": "user", "name": "ada"}]}
        acmes = program.post(f"/api{ACMES}", json=body).json()["webhook"]
        for name in ("one", "two"):
            create_repo(program, name)
        settle(hub)
        roll_up(hub)
        page = browser.get("/").text
    shown = page.partition("<h2>Your webhooks</h2>")[2].partition("<h2>")[0]
    rows = re.findall(r"<li.*?</li>", shown, re.DOTALL)
    assert len(rows) == 5
    assert f'href="{OWN}/{busy["id"]}"' in rows[0]
    assert 'aria-label="2 deliveries in the last 24 hours"' in rows[0]
    assert f'href="{ACMES}/{acmes["id"]}"' in rows[1]
    assert "of <bdi>acme</bdi>" in rows[1]
    assert ">/hook/acmes</span>" in rows[1], "two webhooks of one host differ"
    assert [row.count("<svg") for row in rows] == [1, 1, 0, 0, 0]
    assert f'<a href="{OWN}">All your webhooks</a>' in shown


def _plain(text: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", text))
