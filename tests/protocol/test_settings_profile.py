"""Profile, name, e-mail address and export."""

import pytest
from tests.bed.people import (
    PASSWORD,
    Page,
    api,
    browser_of,
    create_organization,
    create_token,
    create_user,
    link_in,
    mails_to,
    submit,
    wait_for_mail,
)
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import store

pytestmark = pytest.mark.one_engine

PROFILE, RENAME, EMAIL, CONFIRMATION = (
    "/settings/profile",
    "/settings/rename",
    "/settings/email",
    "/settings/email/confirmation",
)


DAY = 24 * 3600


def test_profile_is_saved_and_shown(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as client:
        saved = submit(client, PROFILE, PROFILE, fullname="  Ada   Lovelace ", website="https://ada.example")
        assert (saved.status_code, saved.headers["location"]) == (303, PROFILE)
        page = client.get(PROFILE).text
    assert "Profile saved." in page
    assert 'value="Ada Lovelace"' in page
    assert 'value="https://ada.example"' in page
    assert f"/avatars/{ada.id}.svg" in page


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("fullname", "x" * 97),
        ("website", "javascript:alert(1)"),
        ("website", "https://good@evil.example"),
        ("website", "ada.example"),
        ("website", "https://" + "x" * 300),
    ],
)
def test_invalid_profile_form_retains_what_was_typed(hub: RunningHub, field: str, value: str) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        response = submit(client, PROFILE, PROFILE, **{"fullname": "Ada", "website": "", field: value})
        assert response.status_code == 422
        assert "<title>Error: Profile" in response.text
        assert f'href="#{field}"' in response.text
        assert f'value="{value}"' in response.text
        assert 'aria-invalid="true"' in response.text
        assert 'value="Ada"' not in client.get(PROFILE).text


def test_names_chosen_by_others_cannot_reverse_the_text(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        submit(client, PROFILE, PROFILE, fullname='<b>"Ada"', website="")
        page = client.get(PROFILE).text
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_renamed_user_retains_the_old_name(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "Ada"), create_user(hub, "bob")
    hub.clock.advance(DAY)
    with browser_of(hub, ada) as mine, browser_of(hub, bob) as theirs:
        assert submit(mine, PROFILE, RENAME, username="lovelace").status_code == 303
        assert "Your name is now lovelace." in mine.get(PROFILE).text
        for name in ("Ada", "ADA", "lovelace"):
            refused = submit(theirs, PROFILE, RENAME, username=name)
            assert refused.status_code == 422
            assert f"{name} is already taken." in refused.text
        hub.clock.advance(DAY)
        assert submit(mine, PROFILE, RENAME, username="ada").status_code == 303
        assert submit(theirs, PROFILE, RENAME, username="lovelace").status_code == 422
        with api(hub, create_token(hub, ada)) as program:
            assert program.get("/api/whoami-v2").json()["name"] == "ada"


@pytest.mark.parametrize("name", ["", "-x", "a--b", "settings", "x" * 43, "ädä", "a b"])
def test_invalid_name_is_rejected(hub: RunningHub, name: str) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        response = submit(client, PROFILE, RENAME, username=name)
        assert response.status_code == 422
        assert 'href="#username"' in response.text


def test_name_may_change_its_case(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as client:
        assert submit(client, PROFILE, RENAME, username="ADA").status_code == 303
    found = hub.call(lambda opened: store.user_by_name(opened.db, "ada"))
    assert found is not None
    assert (found.id, found.name) == (ada.id, "ADA")


def test_new_address_takes_effect_when_confirmed_and_the_old_one_is_notified(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as client:
        asked = submit(client, PROFILE, EMAIL, email="Ada@New.example", password=PASSWORD)
        assert asked.status_code == 303
        assert "ada<wbr>@example.<wbr>org" in client.get(PROFILE).text, "nothing changes before it is confirmed"
        link = link_in(mails_to(hub, "ada@new.example")[0])
        assert link.startswith("/change-email/")
        assert submit(client, link).status_code == 303
        page = client.get(PROFILE).text
        assert "ada<wbr>@new.<wbr>example" in page
        assert "Verified" in page
    (told,) = mails_to(hub, "ada@example.org")
    assert told["Subject"] == "Your e-mail address was changed"
    assert "ada@new.example" in told.get_content()


@pytest.mark.parametrize(
    ("email", "password", "field"),
    [
        ("ada@new.example", "wrong", "password"),
        ("ada@new.example", "", "password"),
        ("ADA@example.org", PASSWORD, "email"),
        ("not an address", PASSWORD, "email"),
        ("ａda@new.example", PASSWORD, "email"),  # noqa: RUF001 -- a full-width a
        ("ada@ﬁne.example", PASSWORD, "email"),  # a ligature
        ("ada@new.example\u200b", PASSWORD, "email"),
    ],
)
def test_invalid_address_is_rejected(hub: RunningHub, email: str, password: str, field: str) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        response = submit(client, PROFILE, EMAIL, email=email, password=password)
        assert response.status_code == 422
        assert f'href="#{field}"' in response.text
        assert not password or f'value="{password}"' not in response.text
    wait_for_mail(hub)
    assert not list((hub.settings.data_dir / "mail").glob("*")), "nobody is written to"


def test_known_address_is_revealed_only_to_its_owner(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_user(hub, "bob")
    with browser_of(hub, ada) as client:
        answers = []
        for email in ("bob@example.org", "new@example.org"):
            asked = submit(client, PROFILE, EMAIL, email=email, password=PASSWORD)
            shown = client.get(PROFILE).text
            answers.append((asked.status_code, shown.replace(email, "{email}")))
        assert answers[0] == answers[1]
        assert "A link is on its way to {email}." in answers[0][1]
        assert answers[0][0] == 303
    assert mails_to(hub, "bob@example.org")[0]["Subject"] == "You already have an account"
    assert mails_to(hub, "new@example.org")[0]["Subject"] == "Confirm your e-mail"


def test_only_the_last_requested_address_can_be_confirmed(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        links = []
        for email in ("first@example.org", "second@example.org"):
            submit(client, PROFILE, EMAIL, email=email, password=PASSWORD)
            links.append(link_in(mails_to(hub, email)[0]))
        assert client.get(links[0]).status_code == 404
        assert client.get(links[1]).status_code == 200


def test_changed_password_cancels_a_pending_change_of_address(hub: RunningHub) -> None:
    """It may have been requested by somebody who knew the old password."""
    with browser_of(hub, create_user(hub, "ada")) as client:
        submit(client, PROFILE, EMAIL, email="thief@example.org", password=PASSWORD)
        link = link_in(mails_to(hub, "thief@example.org")[0])
        assert client.get(link).status_code == 200
        submit(client, "/settings/password", current_password=PASSWORD, new_password="a new pass phrase")
        assert client.get(link).status_code == 404


def test_confirmation_can_be_requested_again_up_to_a_limit(hub: RunningHub) -> None:
    ada = create_user(hub, "ada", verified=False)
    with browser_of(hub, ada) as client:
        page = client.get(PROFILE)
        assert "Not verified" in page.text
        older_form = Page(page).hidden(CONFIRMATION)
        statuses = []
        for _ in range(6):
            hub.clock.advance(1)
            statuses.append(submit(client, PROFILE, CONFIRMATION).status_code)
        assert statuses == [303] * 5 + [429]
        # The first mail was sent at sign-up.
        assert submit(client, link_in(mails_to(hub, ada.email, 6)[-1])).status_code == 303
        shown = client.get(PROFILE).text
        assert "Not verified" not in shown
        assert CONFIRMATION not in shown
        assert client.post(CONFIRMATION, data=older_form).status_code == 303
        assert "ada@example.org is verified." in client.get(PROFILE).text
    assert len(mails_to(hub, ada.email, 6)) == 6


def test_password_guesses_are_throttled(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        tries = [submit(client, PROFILE, EMAIL, email="x@example.org", password="guess") for _ in range(11)]
        assert [answer.status_code for answer in tries] == [422] * 10 + [429]
        assert "Too many attempts. Try again in 15 minutes." in tries[-1].text
        assert tries[-1].headers["retry-after"] == "900"
        assert submit(client, PROFILE, EMAIL, email="x@example.org", password=PASSWORD).status_code == 429


def test_unverified_old_address_is_not_notified(hub: RunningHub) -> None:
    ada = create_user(hub, "ada", verified=False)
    with browser_of(hub, ada) as client:
        submit(client, PROFILE, EMAIL, email="new@example.org", password=PASSWORD)
        submit(client, link_in(mails_to(hub, "new@example.org")[0]))
        assert "new<wbr>@example.<wbr>org" in client.get(PROFILE).text
    assert [mail["Subject"] for mail in mails_to(hub, ada.email)] == ["Confirm your e-mail"]


def test_export_contains_everything_but_secrets(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    organization = create_organization(hub, "acme", ada)
    token = create_token(hub, ada, "read", "laptop")
    hub.clock.advance(DAY)
    with browser_of(hub, ada) as client:
        submit(client, PROFILE, RENAME, username="lovelace")
        response = client.get("/settings/export")
        cookie = client.cookies["token"]
    assert response.headers["content-type"] == "application/json"
    assert response.headers["content-disposition"] == 'attachment; filename="lovelace.json"'
    assert response.headers["cache-control"] == "no-store"
    said = response.json()
    assert said["user"]["formerNames"] == ["ada"]
    assert said["user"]["email"] == "ada@example.org"
    assert said["organizations"] == [{"id": organization.id, "name": "acme", "role": "admin"}]
    assert [(item["name"], item["role"], item["lastFour"]) for item in said["tokens"]] == [
        ("laptop", "read", token[-4:])
    ]
    assert [session["ip"] for session in said["sessions"]] == ["127.0.0.1"]
    for secret in (token, cookie, "argon2"):
        assert secret not in response.text
