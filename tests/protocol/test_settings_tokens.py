"""Personal tokens on their pages: shown once, stored as a hash, renamed, refreshed, revoked."""

import re

import httpx
import pytest
from tests.bed.dump import dump
from tests.bed.people import Page, api, browser_of, create_token, create_user, link_in, mails_to, submit
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.tokens import personal

pytestmark = pytest.mark.one_engine

PATH = "/settings/tokens"
WHOAMI = "/api/whoami-v2"
AGAIN = "Already created. The secret cannot be shown again."


def secret_in(response: httpx.Response) -> str:
    (found,) = re.findall(r'value="(hf_[0-9A-Za-z]+)"', response.text)
    assert isinstance(found, str)
    return found


def address_in(page: str) -> str:
    """The URL of the only token in the list."""
    (found,) = set(re.findall(rf'href="({PATH}/[0-9a-f]{{24}})"', page))
    assert isinstance(found, str)
    return found


def works(hub: RunningHub, token: str) -> bool:
    with api(hub, token) as program:
        return program.get(WHOAMI).status_code == 200


def test_token_is_shown_once_and_stored_as_a_hash(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as client:
        assert "Tokens let scripts and git act on your behalf." in client.get(PATH).text
        made = submit(client, PATH, PATH, name="laptop", role="read")
        assert made.status_code == 200
        assert made.headers["cache-control"] == "no-store"
        assert "set-cookie" not in made.headers
        assert "Copy it now. Only a fingerprint is stored, so it cannot be shown again." in made.text
        token = secret_in(made)
        later = client.get(PATH).text
    assert works(hub, token)
    assert token not in later
    for text in ("laptop", "read", f"…{token[-4:]}", "never"):
        assert text in later
    dumped = hub.call(dump)
    assert b"laptop" in dumped, "the dump is complete"
    # Its random part, without the hour at its start and the last four characters, which are stored to recognise it.
    assert token[8:-4].encode() not in dumped
    assert token not in hub.log


def test_owner_is_notified_by_mail(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as client:
        token = secret_in(submit(client, PATH, PATH, name="laptop", role="write"))
    (told,) = mails_to(hub, ada.email)
    assert told["Subject"] == "New token: laptop"
    assert "from 127.0.0.1" in told.get_content()
    assert link_in(told) == PATH
    assert token not in told.get_content()


def test_unverified_address_gets_no_mail_about_tokens(hub: RunningHub) -> None:
    """The caller chooses its subject: a stranger must not receive it."""
    ada = create_user(hub, "ada", verified=False)
    with browser_of(hub, ada) as client:
        submit(client, PATH, PATH, name="buy now", role="read")
        submit(client, "/settings/profile", "/settings/email/confirmation")
    assert {mail["Subject"] for mail in mails_to(hub, ada.email, 2)} == {"Confirm your e-mail"}


def test_reload_creates_no_second_token(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as client:
        form = Page(client.get(PATH)).hidden(PATH) | {"name": "laptop", "role": "read"}
        token = secret_in(client.post(PATH, data=form))
        for _ in range(2):
            again = client.post(PATH, data=form)
            assert again.status_code == 200
            assert AGAIN in again.text
            assert token not in again.text
        assert len(hub.call(lambda opened: personal.of_user(opened.accounts, ada.id))) == 1
        # Nor after the token was revoked.
        submit(client, f"{address_in(client.get(PATH).text)}/revoke")
        assert AGAIN in client.post(PATH, data=form).text
        assert not works(hub, token)
        # The form in that answer works.
        fresh = Page(client.post(PATH, data=form)).hidden(PATH)
        assert works(hub, secret_in(client.post(PATH, data=fresh | {"name": "second", "role": "read"})))


def test_form_number_is_valid_for_its_user_for_a_day(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    with browser_of(hub, ada) as mine, browser_of(hub, bob) as theirs:
        form = Page(mine.get(PATH)).hidden(PATH) | {"name": "laptop", "role": "read"}
        foreign = Page(theirs.get(PATH)).hidden(PATH)["once"]
        issued, random, mac = form["once"].split(".")
        later = f"{int(issued, 16) + 9:x}"
        for bad in (foreign, "", "x", "..", f"{issued}.{random}.", f"{later}.{random}.{mac}", f"{issued}.{random}.zz"):
            refused = mine.post(PATH, data=form | {"once": bad})
            assert refused.status_code == 422
            assert "This form has expired. Send it again." in refused.text
            assert 'value="laptop"' in refused.text
        hub.clock.advance(24 * 3600)
        assert mine.post(PATH, data=form).status_code == 422
        assert not hub.call(lambda opened: personal.of_user(opened.accounts, ada.id))


@pytest.mark.parametrize(
    ("name", "role", "field"),
    [("", "read", "name"), ("x" * 97, "read", "name"), ("a\u202eb", "read", "name"), ("a", "admin", "role"),
     ("a", "", "role")],
)  # fmt: skip
def test_invalid_form_creates_no_token_and_is_not_used_up(hub: RunningHub, name: str, role: str, field: str) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as client:
        form = Page(client.get(PATH)).hidden(PATH)
        refused = client.post(PATH, data=form | {"name": name, "role": role})
        assert refused.status_code == 422
        assert f'href="#{field}"' in refused.text
        assert not hub.call(lambda opened: personal.of_user(opened.accounts, ada.id))
        assert secret_in(client.post(PATH, data=form | {"name": "repaired", "role": "write"}))


def test_token_is_renamed(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    token = create_token(hub, ada, name="old")
    with browser_of(hub, ada) as client:
        address = address_in(client.get(PATH).text)
        assert submit(client, address, name="").status_code == 422
        renamed = submit(client, address, name="new <name>")
        assert (renamed.status_code, renamed.headers["location"]) == (303, address)
        assert "new &lt;name&gt;" in client.get(PATH).text
    assert works(hub, token)


def test_refresh_replaces_the_secret_at_once_and_only_once(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    old = create_token(hub, ada, "read", "laptop")
    with browser_of(hub, ada) as client:
        address = f"{address_in(client.get(PATH).text)}/refresh"
        form = Page(client.get(address)).hidden()
        assert works(hub, old), "looking changes nothing"
        refreshed = client.post(address, data=form)
        assert refreshed.headers["cache-control"] == "no-store"
        new = secret_in(refreshed)
        assert (works(hub, old), works(hub, new)) == (False, True)
        again = client.post(address, data=form)
        assert AGAIN in again.text
        assert works(hub, new)
        assert client.post(address, data=form | {"once": "x"}).status_code == 422
        assert f"…{new[-4:]}" in client.get(PATH).text
    assert [mail["Subject"] for mail in mails_to(hub, ada.email, 2)] == ["New token: laptop"] * 2


def test_revoking_needs_confirmation(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    token = create_token(hub, ada, name="laptop")
    with browser_of(hub, ada) as client:
        address = f"{address_in(client.get(PATH).text)}/revoke"
        asked = client.get(address).text
        assert "Revoke <bdi>laptop</bdi>" in asked
        assert ">Cancel</a>" in asked
        assert works(hub, token)
        done = submit(client, address)
        assert (done.status_code, done.headers["location"]) == (303, PATH)
        assert "Revoked laptop." in client.get(PATH).text
        assert client.get(address).status_code == 404
    assert not works(hub, token)


def test_last_use_is_recorded(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    token = create_token(hub, ada)
    with browser_of(hub, ada) as client:
        assert "never" in client.get(PATH).text
        hub.clock.advance(60)
        assert works(hub, token)
        until(lambda: "2026-09-21 14:14 UTC" in client.get(PATH).text)


def test_number_of_tokens_is_limited(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    for number in range(personal.MAX_TOKENS_PER_USER):
        create_token(hub, ada, "read", f"number {number}")
    with browser_of(hub, ada) as client:
        refused = submit(client, PATH, PATH, name="one more", role="read")
        assert refused.status_code == 422
        assert "Revoke one first." in refused.text
        last = client.get(PATH, params={"page": "10"})
        assert last.status_code == 200
        assert "Older" not in last.text
        assert len(client.get(PATH).content) < 120_000, "a page of a long list stays small"
