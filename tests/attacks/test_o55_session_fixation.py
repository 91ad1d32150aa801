"""O55: the session id changes at sign-in and with a change of privilege; signing out ends the session on the server."""

from contextlib import ExitStack

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.people import PASSWORD, browser_of, create_user, fill_form, link_in, mails_to, setup_link, submit
from tests.bed.running_hub import RunningHub

NEW = "another horse battery"


def is_session(hub: RunningHub, cookie: str) -> bool:
    with hub.client() as client:
        client.cookies.set("token", cookie)
        return client.get("/settings/profile").status_code == 200


def sign_in(client: httpx.Client, name: str = "ada", password: str = PASSWORD) -> str:
    response = submit(client, "/login", username=name, password=password)
    assert response.status_code == 303, response.text
    return client.cookies["token"]


def plant(client: httpx.Client, hub: RunningHub, cookie: str) -> None:
    client.cookies.clear()
    client.cookies.set("token", cookie, domain=hub.settings.host, path="/")


@pytest.mark.one_engine
def test_o55_planted_session_id_is_not_used(hub: RunningHub) -> None:
    create_user(hub, "ada")
    with hub.client() as client:
        plant(client, hub, "chosen-by-the-attacker")
        cookie = sign_in(client)
    assert cookie != "chosen-by-the-attacker"
    assert is_session(hub, cookie)
    assert not is_session(hub, "chosen-by-the-attacker")


@pytest.mark.one_engine
def test_o55_planted_session_of_the_attacker_ends_at_sign_in(hub: RunningHub) -> None:
    """Otherwise the attacker would have a session id that this browser used before."""
    create_user(hub, "ada")
    create_user(hub, "eve")
    with hub.client() as attacker, hub.client() as phone, hub.client() as victim:
        planted, elsewhere = sign_in(attacker, "eve"), sign_in(phone, "eve")
        plant(victim, hub, planted)
        field = victim.get("/").text.partition('name="csrf" value="')[2].partition('"')[0]
        form = {"csrf": field, "username": "ada", "password": PASSWORD}
        assert victim.post("/login", data=form).status_code == 303
        own = victim.cookies["token"]
    assert own != planted
    assert is_session(hub, own)
    assert not is_session(hub, planted)
    assert is_session(hub, elsewhere), "other browsers of that user stay signed in"


@pytest.mark.one_engine
def test_o55_every_sign_in_has_a_new_id(hub: RunningHub) -> None:
    create_user(hub, "ada")
    cookies = set()
    for _ in range(3):
        with hub.client() as client:
            cookies.add(sign_in(client))
    assert len(cookies) == 3
    assert all(len(cookie) >= 43 for cookie in cookies)


@pytest.mark.one_engine
def test_o55_sign_out_ends_the_session_on_the_server(hub: RunningHub) -> None:
    create_user(hub, "ada")
    with hub.client() as here, hub.client() as there:
        mine, other = sign_in(here), sign_in(there)
        assert submit(here, "/", "/logout").status_code == 303
    assert not is_session(hub, mine)
    assert is_session(hub, other)


@pytest.mark.one_engine
def test_o55_new_password_ends_all_sessions(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as client, browser_of(hub, ada) as other:
        before = client.cookies["token"]
        changed = submit(client, "/settings/password", current_password=PASSWORD, new_password=NEW)
        assert changed.status_code == 303, changed.text
        after = client.cookies["token"]
        assert after != before
        assert is_session(hub, after)
        assert not is_session(hub, before)
        assert not is_session(hub, other.cookies["token"])
        assert submit(client, "/reset", email="ada@example.org").status_code == 200
        link = link_in(next(m for m in mails_to(hub, "ada@example.org", 2) if m["Subject"] == "Reset your password"))
        assert submit(client, link, password=PASSWORD).status_code == 303
    assert not is_session(hub, after)


@pytest.mark.one_engine
def test_o55_becoming_operator_changes_the_session_id(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        before = client.cookies["token"]
        made = submit(client, setup_link(hub), username="boss", email="boss@example.org", password=PASSWORD)
        assert made.status_code == 303
        assert client.cookies["token"] != before
        assert is_session(hub, client.cookies["token"])
    assert not is_session(hub, before)


def test_o55_old_password_creates_no_session_during_a_password_change(hub: RunningHub) -> None:
    """A session created with the old password must not outlive the change, whichever transaction commits first."""
    create_user(hub, "ada")
    with ExitStack() as stack:
        asking = stack.enter_context(hub.client())
        submit(asking, "/reset", email="ada@example.org")
        link = link_in(mails_to(hub, "ada@example.org")[-1])
        clients = [stack.enter_context(hub.client()) for _ in range(8)]
        forms = [fill_form(client, "/login", username="ada", password=PASSWORD) for client in clients]
        answers = run_concurrently([*forms, fill_form(asking, link, password=NEW)])
        assert answers[-1].status_code == 303
        assert {answer.status_code for answer in answers[:-1]} <= {303, 422}
        cookies = [client.cookies["token"] for client in clients if "token" in client.cookies]
    assert [cookie for cookie in cookies if is_session(hub, cookie)] == []
