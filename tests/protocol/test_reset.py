"""`/reset`: a new password by mail, without revealing who has an account."""

from contextlib import ExitStack

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.people import (
    PASSWORD,
    Page,
    api,
    browser_of,
    create_token,
    create_user,
    fill_form,
    link_in,
    mails_to,
    submit,
)
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import store

SENT = "If that address has an account, a link is on its way."
NEW = "another horse battery"


def ask(client: httpx.Client, email: str) -> httpx.Response:
    return submit(client, "/reset", email=email)


def link_for(hub: RunningHub, name: str) -> str:
    address = f"{name}@example.org"

    def links() -> list[str]:
        return [link_in(mail) for mail in mails_to(hub, address, 0) if mail["Subject"] == "Reset your password"]

    before = set(links())
    with hub.client() as client:
        assert ask(client, address).status_code == 200
    return (set(links()) - before).pop()


@pytest.mark.one_engine
def test_link_sets_a_new_password(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    link = link_for(hub, "ada")
    with hub.client() as client, browser_of(hub, ada) as elsewhere:
        assert ">ada<" in client.get(link).text
        hub.clock.advance(1)
        response = submit(client, link, password=NEW)
        assert (response.status_code, response.headers["location"]) == (303, "/login")
        assert "Your password was changed." in client.get("/login").text
        assert elsewhere.get("/settings/profile").status_code == 303, "every session has ended"
        assert submit(client, "/login", username="ada", password=PASSWORD).status_code == 422
        assert submit(client, "/login", username="ada", password=NEW).status_code == 303
        assert client.get(link).status_code == 404
    told = [mail["Subject"] for mail in mails_to(hub, "ada@example.org")]
    assert told == ["Reset your password", "Your password was changed"]


@pytest.mark.one_engine
@pytest.mark.parametrize("address", ["ada@example.org", "ADA@example.org", "nobody@example.org"])
def test_answer_is_always_the_same(hub: RunningHub, address: str) -> None:
    create_user(hub, "ada")
    with hub.client() as client:
        response = ask(client, address)
    assert response.status_code == 200
    assert SENT in response.text
    assert address not in response.text


@pytest.mark.one_engine
def test_disabled_account_gets_no_mail(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_user(hub, "bob")
    hub.call(lambda opened: opened.db.write(lambda tx: store.set_disabled(tx, ada.id, 1)))
    with hub.client() as client:
        assert SENT in ask(client, "ada@example.org").text
        assert SENT in ask(client, "bob@example.org").text
    mails_to(hub, "bob@example.org")
    assert mails_to(hub, "ada@example.org", 0) == []


@pytest.mark.one_engine
def test_invalid_address_is_rejected(hub: RunningHub) -> None:
    with hub.client() as client:
        response = ask(client, "ada")
    assert response.status_code == 422
    assert "This is not an e-mail address." in response.text


@pytest.mark.parametrize("address", ["ada@example.org", "nobody@example.org"])
def test_requests_are_limited_whether_or_not_mail_is_sent(hub: RunningHub, address: str) -> None:
    create_user(hub, "ada")
    with hub.client() as client:
        assert [ask(client, address).status_code for _ in range(6)] == [200] * 5 + [429]
        refused = ask(client, address)
    assert refused.headers["retry-after"] == "3600"
    assert "Too many e-mails to this address. Try again in 60 minutes." in refused.text


def test_link_expires_after_an_hour(hub: RunningHub) -> None:
    create_user(hub, "ada")
    link = link_for(hub, "ada")
    with hub.client() as client:
        hidden = Page(client.get(link)).hidden()
        hub.clock.advance(3600)
        assert client.get(link).status_code == 404
        assert client.post(link, data={**hidden, "password": NEW}).status_code == 404


@pytest.mark.one_engine
def test_invalid_password_does_not_use_up_the_link(hub: RunningHub) -> None:
    create_user(hub, "ada")
    link = link_for(hub, "ada")
    with hub.client() as client:
        response = submit(client, link, password="short")
        assert response.status_code == 422
        assert "A password must have 8 to 1,024 characters." in response.text
        assert submit(client, link, password=NEW).status_code == 303


@pytest.mark.one_engine
def test_using_one_link_ends_the_others(hub: RunningHub) -> None:
    create_user(hub, "ada")
    first, second = link_for(hub, "ada"), link_for(hub, "ada")
    with hub.client() as client:
        assert client.get(first).status_code == 200
        assert submit(client, second, password=NEW).status_code == 303
        assert client.get(first).status_code == 404


@pytest.mark.one_engine
def test_tokens_created_before_the_address_was_proven_are_revoked(hub: RunningHub) -> None:
    """The creator of the account may not be the owner of the address."""
    ada, bob = create_user(hub, "ada", verified=False), create_user(hub, "bob")
    tokens = create_token(hub, ada), create_token(hub, bob)
    with hub.client() as client:
        for name in ("ada", "bob"):
            assert submit(client, link_for(hub, name), password=NEW).status_code == 303
    answers = []
    for token in tokens:
        with api(hub, token) as client:
            answers.append(client.get("/api/whoami-v2").status_code)
    assert answers == [401, 200]


def test_concurrent_uses_of_one_link_have_one_winner(hub: RunningHub) -> None:
    create_user(hub, "ada")
    link = link_for(hub, "ada")
    passwords = [f"password number {number}" for number in range(6)]
    with ExitStack() as stack:
        forms = [fill_form(stack.enter_context(hub.client()), link, password=password) for password in passwords]
        answers = run_concurrently(forms)
    assert sorted(answer.status_code for answer in answers) == [303] + [404] * 5
    with hub.client() as client:
        for password, answer in zip(passwords, answers, strict=True):
            entered = submit(client, "/login", username="ada", password=password)
            assert entered.status_code == (303 if answer.status_code == 303 else 422)
            client.cookies.clear()
