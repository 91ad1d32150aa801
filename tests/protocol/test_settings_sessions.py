"""The list of sessions: the current one is marked, others can be ended."""

import re

import pytest
from tests.bed.people import browser_of, create_user, post, submit
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import operator_actions
from hubgate.server.accounts.model import User, Visitor
from hubgate.server.accounts.sessions import browser_sessions
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

PATH = "/settings/sessions"
END = re.compile(rf'action="({PATH}/[0-9a-f]{{24}}/end)"')
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def sign_in_from(hub: RunningHub, user: User, visitor: Visitor) -> str:
    async def work(opened: Hub) -> str:
        return await opened.db.write(lambda tx: browser_sessions.start(tx, user.id, visitor, opened.clock()))

    return hub.call(work)


def test_sessions_are_listed_and_the_current_one_is_marked(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    sign_in_from(hub, ada, Visitor("203.0.113.7", FIREFOX))
    sign_in_from(hub, ada, Visitor("2001:db8::1", "<script>alert(1)</script>"))
    with browser_of(hub, ada) as client:
        page = client.get(PATH).text
    assert page.count("This one") == 1
    assert len(END.findall(page)) == 2, "no button ends the session in use"
    for text in ("Firefox on Linux", "203.0.113.7", "2001:db8::1", "2026-09-21 14:13 UTC"):
        assert text in page
    assert "alert(1)" not in page


def test_ended_session_is_rejected_at_its_next_request(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as mine, browser_of(hub, ada) as other:
        assert other.get(PATH).status_code == 200
        (address,) = END.findall(mine.get(PATH).text)
        assert submit(mine, PATH, address).status_code == 303
        assert other.get(PATH).status_code == 303
        page = mine.get(PATH).text
        assert "Session ended." in page
        assert not END.findall(page)
        assert post(mine, address).status_code == 404, "a second time"


def test_all_other_sessions_are_ended(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    with browser_of(hub, ada) as mine, browser_of(hub, ada) as other, browser_of(hub, bob) as theirs:
        sign_in_from(hub, ada, Visitor("203.0.113.7", FIREFOX))
        assert submit(mine, PATH, f"{PATH}/end-others").status_code == 303
        page = mine.get(PATH).text
        assert "2 sessions ended." in page
        assert f"{PATH}/end-others" not in page
        assert other.get(PATH).status_code == 303
        assert theirs.get(PATH).status_code == 200


def test_another_users_session_is_404_and_continues(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    with browser_of(hub, ada) as mine, browser_of(hub, bob) as first, browser_of(hub, bob) as second:
        (address,) = END.findall(first.get(PATH).text)
        assert post(mine, address).status_code == 404
        assert second.get(PATH).status_code == 200


def test_ending_the_current_session_signs_out(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as mine, browser_of(hub, ada) as other:
        (address,) = END.findall(other.get(PATH).text)
        ended = post(mine, address)
        assert ended.headers["location"] == "/"
        assert "token" not in mine.cookies
        assert mine.get(PATH).status_code == 303


def test_last_use_is_recorded_occasionally(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        assert "14:13 UTC" in client.get(PATH).text
        hub.clock.advance(60)
        assert "14:13 UTC" in client.get(PATH).text
        hub.clock.advance(600)
        client.get(PATH)
        until(lambda: "14:24 UTC" in client.get(PATH).text)


def test_session_ends_30_days_after_its_last_use(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as mine, browser_of(hub, ada) as idle:
        for _ in range(31):
            hub.clock.advance(24 * 3600)
            # A use during another one's write is recorded at the next occasion, so repeat until it is stored.
            until(lambda: mine.get(PATH).status_code == 200 and last_use_of(hub, ada) == hub.clock())
        assert idle.get(PATH).status_code == 303
        assert not END.findall(mine.get(PATH).text)


def last_use_of(hub: RunningHub, user: User) -> int:
    return hub.call(lambda opened: browser_sessions.of_user(opened.accounts, user.id))[0].last_used_at


def test_disabled_users_sessions_are_rejected_at_the_next_request(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as client:
        assert client.get(PATH).status_code == 200
        hub.call(lambda opened: operator_actions.disable(opened.accounts, ada))
        assert client.get(PATH).status_code == 303


def test_long_list_has_pages(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    for _ in range(60):
        sign_in_from(hub, ada, Visitor("203.0.113.7", FIREFOX))
    with browser_of(hub, ada) as client:
        first, second = client.get(PATH).text, client.get(PATH, params={"page": "2"}).text
    assert "?page=2" in first
    assert "Newer" not in first
    assert "Older" not in second
    assert "61 in all" in first
    assert len(set(END.findall(first)) | set(END.findall(second))) == 60
