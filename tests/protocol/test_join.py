"""`/join`: open, by invitation, or closed; the answer does not reveal whether an address is known."""

from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import Engine, settings_for
from tests.bed.people import PASSWORD, Page, browser_of, create_user, fill_form, link_in, mails_to, submit
from tests.bed.running_hub import RunningHub, run_hub

pytestmark = pytest.mark.one_engine

CHECK = "Check your email."


def join(client: httpx.Client, name: str, email: str = "", password: str = PASSWORD) -> httpx.Response:
    return submit(client, "/join", username=name, email=email or f"{name}@example.org", password=password)


def test_visitor_can_join(hub: RunningHub) -> None:
    with hub.client() as client:
        response = join(client, "Ada", "Ada@Example.org")
        assert response.status_code == 200
        assert CHECK in response.text
        assert "token" not in client.cookies
        (mail,) = mails_to(hub, "ada@example.org")
        assert mail["Subject"] == "Confirm your e-mail"
        assert link_in(mail).startswith("/verify/")
        assert submit(client, "/login", username="ada", password=PASSWORD).status_code == 303


def test_known_address_gets_the_same_answer_and_a_mail(hub: RunningHub) -> None:
    create_user(hub, "ada")
    with hub.client() as client:
        unknown = join(client, "bob", "bob@example.org")
        known = join(client, "eve", "ada@example.org")
        assert known.status_code == unknown.status_code == 200
        assert known.text.replace("ada@", "bob@") == unknown.text
        (mail,) = mails_to(hub, "ada@example.org")
        assert mail["Subject"] == "You already have an account"
        assert submit(client, "/login", username="eve", password=PASSWORD).status_code == 422


def test_invalid_form_is_rejected(hub: RunningHub) -> None:
    with hub.client() as client:
        response = submit(client, "/join?next=/docs/api", username="-ada-", email="ada", password="short")
    assert response.status_code == 422
    assert "<title>Error: Join" in response.text
    assert "Fix these to continue:" in response.text
    assert 'value="-ada-"' in response.text
    assert 'value="ada"' in response.text
    assert "short" not in response.text.replace("Shorten", "")
    assert 'name="next" value="/docs/api"' in response.text
    for field in ("username", "email", "password"):
        assert f'<a href="#{field}">' in response.text
        assert f'id="{field}-error"' in response.text


@pytest.mark.parametrize("name", ["ada", "ADA", "login", "reset", "change-email"])
def test_taken_name_is_rejected(hub: RunningHub, name: str) -> None:
    create_user(hub, "Ada")
    with hub.client() as client:
        response = join(client, name, "other@example.org")
    assert response.status_code == 422
    assert f"{name} is already taken." in response.text


def test_taken_name_is_reported_with_the_other_errors(hub: RunningHub) -> None:
    create_user(hub, "ada")
    with hub.client() as client:
        response = join(client, "ada", "ada@example.org", "short")
        assert response.status_code == 422
        assert "ada is already taken." in response.text
        assert "A password must have 8 to 1,024 characters." in response.text
        assert 'id="email-error"' not in response.text
        response = join(client, "ada", "ada")
        assert "ada is already taken." in response.text
        assert 'id="email-error"' in response.text


def test_taken_names_do_not_count_against_the_limit(hub: RunningHub) -> None:
    """A visitor who looks for a free name must not reach the mail limit."""
    create_user(hub, "ada")
    with hub.client() as client:
        for _ in range(25):
            assert join(client, "ada", "bob@example.org").status_code == 422
        assert join(client, "bob").status_code == 200


def test_sign_ups_from_an_address_are_limited(hub: RunningHub) -> None:
    with hub.client() as client:
        for number in range(20):
            assert join(client, f"user{number}").status_code == 200
        response = join(client, "one-more")
        assert response.status_code == 429
        assert response.headers["retry-after"] == "3600"
        assert "Too many attempts. Try again in 60 minutes." in response.text
        assert 'value="one-more"' in response.text
        hub.clock.advance(3601)
        assert join(client, "one-more").status_code == 200


def test_mails_to_an_address_are_limited(hub: RunningHub) -> None:
    create_user(hub, "ada")
    with hub.client() as client:
        for number in range(5):
            assert join(client, f"user{number}", "ada@example.org").status_code == 200
        response = join(client, "another", "ada@example.org")
    assert response.status_code == 429
    assert "Too many e-mails to this address. Try again in 60 minutes." in response.text


@pytest.mark.parametrize("signup", ["invite", "closed"])
def test_joining_may_be_disabled(engine: Engine, tmp_path: Path, signup: str) -> None:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, signup=signup)) as hub, hub.client() as client:
        field = Page(client.get("/login")).hidden()["csrf"]
        shut = client.get("/join")
        form = {"csrf": field, "username": "ada", "email": "ada@example.org", "password": PASSWORD}
        sent = client.post("/join", data=form)
        assert (shut.status_code, sent.status_code) == (403, 403)
        assert ("need an invitation" if signup == "invite" else "does not accept new accounts") in shut.text
        assert client.post("/join", data={**form, "invitation": "guessed"}).status_code == 404
        assert submit(client, "/login", username="ada", password=PASSWORD).status_code == 422
        assert ('href="/join"' in client.get("/").text) is (signup == "invite")
        assert 'href="/join"' not in client.get("/login").text


def test_signed_in_user_cannot_join_again(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        field = Page(client.get("/")).hidden("/theme")["csrf"]
        form = {"csrf": field, "username": "bob", "email": "bob@example.org", "password": PASSWORD}
        assert client.post("/join", data=form).headers["location"] == "/"
        assert submit(client, "/", "/logout").status_code == 303
        assert submit(client, "/login", username="bob", password=PASSWORD).status_code == 422


def race(hub: RunningHub, candidates: list[tuple[str, str]]) -> list[httpx.Response]:
    """Everyone loads the form; then all submit it."""
    with ExitStack() as stack:
        forms = []
        for name, email in candidates:
            client = stack.enter_context(hub.client())
            forms.append(fill_form(client, "/join", username=name, email=email, password=PASSWORD))
        return run_concurrently(forms)


def test_concurrent_requests_for_one_name_create_one_account(hub: RunningHub) -> None:
    answers = race(hub, [("wanted", f"racer{number}@example.org") for number in range(8)])
    assert sorted(answer.status_code for answer in answers) == [200] + [422] * 7
    assert sum("wanted is already taken." in answer.text for answer in answers) == 7
    with hub.client() as client:
        for number, answer in enumerate(answers):
            entered = submit(client, "/login", username=f"racer{number}@example.org", password=PASSWORD)
            assert entered.status_code == (303 if answer.status_code == 200 else 422)
            client.cookies.clear()


def test_concurrent_requests_with_one_address_create_one_account(hub: RunningHub) -> None:
    answers = race(hub, [(f"racer{number}", "one@example.org") for number in range(4)])
    assert [CHECK in answer.text for answer in answers] == [True] * 4
    subjects = [mail["Subject"] for mail in mails_to(hub, "one@example.org", 4)]
    assert sorted(subjects) == ["Confirm your e-mail"] + ["You already have an account"] * 3
