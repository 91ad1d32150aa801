"""`/verify/{secret}` and `/change-email/{secret}`: opening a link changes nothing, its button does."""

import httpx
import pytest
from tests.bed.people import PASSWORD, Page, browser_of, create_user, link_in, mails_to, submit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import addresses, store
from hubgate.server.accounts.model import User
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine


def stored(hub: RunningHub, user: User) -> User:
    found = hub.call(lambda opened: store.user(opened.db, user.id))
    assert found is not None
    return found


def verification_of(hub: RunningHub, name: str) -> str:
    return link_in(mails_to(hub, f"{name}@example.org")[-1])


def change_to(hub: RunningHub, user: User, new: str) -> str:
    async def work(opened: Hub) -> None:
        await addresses.request_change(opened.accounts, user, new, PASSWORD)

    hub.call(work)
    return link_in(mails_to(hub, new)[-1])


def test_opening_changes_nothing_and_the_button_confirms(hub: RunningHub) -> None:
    ada = create_user(hub, "ada", verified=False)
    link = verification_of(hub, "ada")
    with hub.client() as client:
        for _ in range(3):
            shown = client.get(link)
            assert shown.status_code == 200
            assert "ada<wbr>@example.<wbr>org" in shown.text
        assert client.head(link).status_code == 200
        assert stored(hub, ada).email_verified_at is None
        assert submit(client, link, password=PASSWORD).headers["location"] == "/"
        assert stored(hub, ada).email_verified_at is not None
        assert "Your e-mail address is confirmed." in client.get("/").text
        assert client.get(link).status_code == 404


def test_link_expires_after_a_day(hub: RunningHub) -> None:
    create_user(hub, "ada", verified=False)
    link = verification_of(hub, "ada")
    with hub.client() as client:
        hidden = Page(client.get(link)).hidden()
        hub.clock.advance(24 * 3600)
        assert client.get(link).status_code == 404
        assert client.post(link, data=hidden).status_code == 404


def test_link_of_another_kind_does_nothing(hub: RunningHub) -> None:
    ada = create_user(hub, "ada", verified=False)
    secret = verification_of(hub, "ada").rpartition("/")[2]
    with hub.client() as client:
        hidden = Page(client.get(f"/verify/{secret}")).hidden()
        for door in ("change-email", "reset", "setup", "invitations"):
            assert client.get(f"/{door}/{secret}").status_code == 404
            sent = client.post(f"/{door}/{secret}", data={**hidden, "password": "another one"})
            assert sent.status_code == (401 if door == "invitations" else 404)
        assert stored(hub, ada).email_verified_at is None
        confirmed = submit(client, f"/verify/{secret}", password=PASSWORD)
        assert confirmed.status_code == 303, "and it is not used up by that"


def test_link_changes_the_address(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    link = change_to(hub, ada, "new@example.org")
    assert link.startswith("/change-email/")
    with hub.client() as client:
        shown = client.get(link).text
        assert "new<wbr>@example.<wbr>org" in shown
        assert ">ada<" in shown
        assert stored(hub, ada).email == "ada@example.org"
        assert submit(client, link, password=PASSWORD).status_code == 303
        assert stored(hub, ada).email == "new@example.org"
        assert client.get(link).status_code == 404
    told = mails_to(hub, "ada@example.org")[-1]
    assert told["Subject"] == "Your e-mail address was changed"


def test_address_taken_since_then_is_rejected(hub: RunningHub) -> None:
    link = change_to(hub, create_user(hub, "ada"), "bob@example.org")
    create_user(hub, "bob")
    with hub.client() as client:
        response = submit(client, link, password=PASSWORD)
    assert response.status_code == 409
    assert "Another account already uses this address." in response.text


def test_mail_can_be_sent_again(hub: RunningHub) -> None:
    ada = create_user(hub, "ada", verified=False)
    with browser_of(hub, ada) as client:
        home = client.get("/").text
        assert "Needs attention" in home
        hub.clock.advance(1)
        assert submit(client, "/", "/settings/email/confirmation").status_code == 303
        first, second = (link_in(mail) for mail in mails_to(hub, "ada@example.org", 2))
        assert first != second
        assert submit(client, second).status_code == 303
        assert "Needs attention" not in client.get("/").text


@pytest.mark.parametrize("door", ["verify", "change-email", "reset", "setup", "invitations"])
def test_url_with_a_secret_is_not_leaked(hub: RunningHub, door: str) -> None:
    """Also on the page that says that the link is no longer valid."""
    with hub.client() as client:
        headers = client.get(f"/{door}/gone").headers
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "form-action 'self'" in headers["content-security-policy"]


def test_page_cannot_be_framed_or_called_by_others(hub: RunningHub) -> None:
    create_user(hub, "ada", verified=False)
    link = verification_of(hub, "ada")
    assert httpx.post(hub.url + link, data={"csrf": "x"}).status_code == 403
    assert httpx.get(hub.url + link).headers["x-frame-options"] == "DENY"
