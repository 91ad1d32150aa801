"""Personal tokens that expire: the choices, the end, the mail a week before, and a refresh."""

import re
import threading
from datetime import UTC, datetime

import pytest
from tests.bed.people import (
    Page,
    api,
    browser_of,
    create_limited_token,
    create_user,
    mails_to,
    submit,
    wait_for_mail,
)
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.tokens import personal
from hubgate.server.accounts.tokens.expiry import TokenExpiry
from hubgate.server.accounts.tokens.limits import own_account
from hubgate.server.accounts.tokens.model import PersonalToken, parse_expiry
from hubgate.server.clock import DAY, SECOND
from hubgate.server.errors import FieldErrors
from hubgate.server.worker.sweep import Sweep

PATH, WHOAMI = "/settings/tokens", "/api/whoami-v2"
DAY_SECONDS = 24 * 60 * 60


def works(hub: RunningHub, text: str) -> bool:
    with api(hub, text) as client:
        return client.get(WHOAMI).status_code == 200


def check_expiry(hub: RunningHub) -> None:
    hub.call(lambda opened: TokenExpiry(opened.accounts).step())


def notices(hub: RunningHub, address: str) -> list[str]:
    wait_for_mail(hub)
    return [mail["Subject"] for mail in mails_to(hub, address, 0) if mail["Subject"].startswith("Token expires")]


def token_named(hub: RunningHub, user_id: str, name: str) -> PersonalToken:
    found = hub.call(lambda opened: personal.of_user(opened.accounts, user_id))
    return next(token for token in found if token.name == name)


def test_expired_token_is_refused_listed_refreshed_and_at_last_deleted(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as browser:
        made = submit(browser, PATH, PATH, name="week", role="read", expires="7")
        (text,) = re.findall(r'value="(hf_[0-9A-Za-z]+)"', made.text)
        hub.clock.advance(7 * DAY_SECONDS - 60)
        assert works(hub, text)
        hub.clock.advance(60)
        assert not works(hub, text)
        assert "Expired" in browser.get(PATH).text
        address = f"{PATH}/{token_named(hub, ada.id, 'week').id}"
        refreshed = submit(browser, f"{address}/refresh")
        (fresh,) = re.findall(r'value="(hf_[0-9A-Za-z]+)"', refreshed.text)
        assert works(hub, fresh)
        assert not works(hub, text)
        hub.clock.advance(7 * DAY_SECONDS)
        assert not works(hub, fresh), "with the lifetime that it was created with"

        def swept() -> bool:
            hub.call(lambda opened: Sweep(opened.db, opened.clock).step())
            return not hub.call(lambda opened: personal.of_user(opened.accounts, ada.id))

        assert not swept()
        hub.clock.advance(30 * DAY_SECONDS)
        assert swept()


@pytest.mark.one_engine
def test_mail_is_sent_once_a_week_before(hub: RunningHub) -> None:
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve", verified=False)
    place = [own_account(ada, ["jobs"])]
    for name, days in (("short", 7), ("month", 30), ("quarter", 90)):
        create_limited_token(hub, ada, places=place, name=name, expires_at=hub.clock() + days * DAY)
    create_limited_token(hub, ada, places=place, name="endless")
    create_limited_token(hub, eve, places=[own_account(eve, ["jobs"])], expires_at=hub.clock() + 30 * DAY)
    check_expiry(hub)
    assert notices(hub, ada.email) == []
    hub.clock.advance(23 * DAY_SECONDS - 60)
    check_expiry(hub)
    assert notices(hub, ada.email) == []
    hub.clock.advance(120)
    runners = [threading.Thread(target=check_expiry, args=(hub,)) for _ in range(3)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    check_expiry(hub)
    assert notices(hub, ada.email) == ["Token expires soon: month"]
    hub.clock.advance(60 * DAY_SECONDS)
    check_expiry(hub)
    assert sorted(notices(hub, ada.email)) == ["Token expires soon: month", "Token expires soon: quarter"]
    assert notices(hub, eve.email) == []


NOON = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()) * SECOND


@pytest.mark.parametrize(
    ("choice", "day", "until"),
    [
        ("7", "", NOON + 7 * DAY),
        ("90", "2026-01-01", NOON + 90 * DAY),
        ("never", "", None),
        ("date", "2026-03-01", NOON + DAY // 2),
        ("date", " 2026-03-31 ", NOON + DAY // 2 + 30 * DAY),
    ],
)
def test_expiry_is_parsed(choice: str, day: str, until: int | None) -> None:
    assert parse_expiry(choice, day, NOON) == until


@pytest.mark.parametrize(("choice", "day"), [("", ""), ("8", ""), ("date", ""), ("date", "x"), ("date", "2026-02-28")])
def test_invalid_expiry_is_rejected(choice: str, day: str) -> None:
    with pytest.raises(FieldErrors):
        parse_expiry(choice, day, NOON)


@pytest.mark.one_engine
def test_read_token_never_expires_by_default(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as browser:
        form = Page(browser.get(PATH)).hidden(PATH) | {"role": "read"}
        assert browser.post(PATH, data=form | {"name": "old form"}).status_code == 200
        refused = browser.post(PATH, data=form | {"name": "x", "expires": "date", "expires_on": "soon"})
        assert refused.status_code == 422
        assert 'href="#expires_on"' in refused.text
    assert token_named(hub, ada.id, "old form").expires_at is None
