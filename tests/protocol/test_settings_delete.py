"""Deleting an account: consequences first, then name and password; rejected if an organization would have no admin."""

import pytest
from tests.bed.people import PASSWORD, api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import signup, store
from hubgate.server.accounts.model import User
from hubgate.server.accounts.signup import Candidate
from hubgate.server.errors import Conflict
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

PATH = "/settings/delete"


def exists(hub: RunningHub, name: str) -> bool:
    return hub.call(lambda opened: store.user_by_name(opened.db, name)) is not None


def test_page_lists_the_consequences_with_counts(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", bob, ada="write")
    create_token(hub, ada)
    create_token(hub, ada)
    with browser_of(hub, ada) as client:
        page = client.get(PATH).text
    told = "This permanently deletes <bdi>ada</bdi> with 0 repos, 0 collections, 2 access tokens and 1 membership."
    assert told in page
    assert "Delete <bdi>ada</bdi></span></button>" in page
    assert ">Cancel</a>" in page
    assert exists(hub, "ada")


def test_everything_is_deleted_but_the_name_stays_reserved_and_the_address_is_free(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "Ada"), create_user(hub, "bob")
    create_organization(hub, "acme", bob, Ada="admin")
    token = create_token(hub, ada)
    hub.clock.advance(24 * 3600)
    with browser_of(hub, ada) as client, browser_of(hub, ada) as other, browser_of(hub, bob) as theirs:
        deleted = submit(client, PATH, name="Ada", password=PASSWORD)
        assert (deleted.status_code, deleted.headers["location"]) == (303, "/")
        assert "Your account was deleted." in client.get("/").text
        assert "token" not in client.cookies
        assert other.get(PATH).status_code == 303
        assert submit(theirs, "/settings/profile", "/settings/rename", username="ada").status_code == 422
    with api(hub, token) as program:
        assert program.get("/api/whoami-v2").status_code == 401
    assert not exists(hub, "ada")

    async def join(opened: Hub, name: str) -> User:
        candidate = Candidate(name, ada.email, PASSWORD)
        return await signup.create_by_operator(opened.accounts, candidate, verified=True, operator=False)

    with pytest.raises(Conflict, match="ada is already taken"):
        hub.call(lambda opened: join(opened, "ada"))
    assert hub.call(lambda opened: join(opened, "lovelace")).email == ada.email


@pytest.mark.parametrize(
    ("name", "password", "field"),
    [("", PASSWORD, "name"), ("bob", PASSWORD, "name"), ("ADA", PASSWORD, "name"), ("ada", "wrong", "password")],
)
def test_name_and_password_are_required(hub: RunningHub, name: str, password: str, field: str) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        refused = submit(client, PATH, name=name, password=password)
        assert refused.status_code == 422
        assert f'href="#{field}"' in refused.text
        assert PASSWORD not in refused.text
        assert client.get(PATH).status_code == 200


def test_guesses_are_throttled(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        tries = [submit(client, PATH, name="ada", password="guess").status_code for _ in range(11)]
        assert tries == [422] * 10 + [429]


def test_only_admin_sees_the_names_of_these_organizations(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="write")
    create_organization(hub, "workshop", ada, bob="admin")
    with browser_of(hub, ada) as client:
        page = client.get(PATH).text
        assert "You are the only admin of:" in page
        assert 'href="/organizations/acme/settings/members"' in page
        assert "workshop" not in page
        assert f'action="{PATH}"' not in page
        # The page may be outdated.
        hidden = {"csrf": page.split('name="csrf" value="')[1].split('"')[0]}
        refused = client.post(PATH, data={**hidden, "name": "ada", "password": PASSWORD})
        assert refused.status_code == 409
        assert "You are the only admin of:" in refused.text
    assert exists(hub, "ada")
