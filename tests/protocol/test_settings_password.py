"""Changing the password: the current one is required, other browsers are signed out, the owner is notified."""

import pytest
from tests.bed.people import PASSWORD, api, browser_of, create_token, create_user, mails_to, submit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import store
from hubgate.server.accounts.model import User
from hubgate.server.accounts.passwords import password_matches
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

PATH = "/settings/password"
NEW = "a new pass phrase"


def is_password(hub: RunningHub, user: User, password: str) -> bool:
    async def work(opened: Hub) -> bool:
        return await password_matches(password, await store.password_hash(opened.db, user.id))

    return hub.call(work)


def test_o55_session_is_new_and_the_others_end(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as mine, browser_of(hub, ada) as other, hub.client() as thief:
        before = mine.cookies["token"]
        thief.cookies.set("token", before, domain=hub.settings.host)
        changed = submit(mine, PATH, current_password=PASSWORD, new_password=NEW)
        assert (changed.status_code, changed.headers["location"]) == (303, PATH)
        assert "HttpOnly" in changed.headers["set-cookie"]
        assert mine.cookies["token"] != before
        shown = mine.get(PATH)
        assert shown.status_code == 200
        assert "Password changed. Revoked: 1 other session." in shown.text
        assert other.get(PATH).status_code == thief.get(PATH).status_code == 303
    assert is_password(hub, ada, NEW)
    assert not is_password(hub, ada, PASSWORD)
    (told,) = mails_to(hub, ada.email)
    assert told["Subject"] == "Your password was changed"


@pytest.mark.parametrize(
    ("current", "new", "field"),
    [("wrong", NEW, "current_password"), (PASSWORD, "short", "new_password"), (PASSWORD, "x" * 1025, "new_password")],
)
def test_rejected_change_changes_nothing(hub: RunningHub, current: str, new: str, field: str) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as client, browser_of(hub, ada) as other:
        response = submit(client, PATH, current_password=current, new_password=new)
        assert response.status_code == 422
        assert f'href="#{field}"' in response.text
        assert current not in response.text
        assert new not in response.text
        assert client.get(PATH).status_code == other.get(PATH).status_code == 200
    assert is_password(hub, ada, PASSWORD)


def test_guesses_are_throttled(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        tries = [submit(client, PATH, current_password="guess", new_password=NEW).status_code for _ in range(11)]
        assert tries == [422] * 10 + [429]
        hub.clock.advance(15 * 60)
        assert submit(client, PATH, current_password=PASSWORD, new_password=NEW).status_code == 303


def test_personal_tokens_still_work(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as client, api(hub, create_token(hub, ada)) as program:
        submit(client, PATH, current_password=PASSWORD, new_password=NEW)
        assert program.get("/api/whoami-v2").status_code == 200
