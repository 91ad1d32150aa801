"""`/`: an introduction with links for visitors; open tasks for signed-in users."""

import re
from pathlib import Path

import pytest
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.organizations import add_to_many_organizations, invite_to_all_organizations
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub

pytestmark = pytest.mark.one_engine

EMPTY = "<h2>Start here</h2>"


def main_of(page: str) -> str:
    return page.partition("<main")[2].partition("</main>")[0]


@pytest.mark.parametrize(("signup", "joins"), [("open", True), ("invite", True), ("closed", False)])
def test_visitors_see_sign_in_and_join(sqlite_template: Path, tmp_path: Path, signup: str, joins: bool) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(settings_for(url, tmp_path, signup=signup)) as hub, hub.client() as client:
        main = main_of(client.get("/").text)
    assert 'class="button button-primary" href="/login"' in main
    assert main.count("button-primary") == 1
    assert ('href="/join"' in main) is joins
    assert "Organization token exchange" in main
    assert EMPTY not in main


def test_new_user_sees_an_empty_page(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        main = main_of(client.get("/").text)
    assert EMPTY in main
    assert re.findall("<h3>(.*?)</h3>", main) == ["Create a repo", "Build an app", "Add a webhook"]
    for command in ("hubgate repos create", "curl -X POST", "hubgate webhooks create --url https://example.com/hook"):
        assert command in main
    assert main.count("button-primary") == 1
    assert '<a class="button" href="/settings/applications/new">Build an app</a>' in main
    assert '<a class="button" href="/organizations/new">New organization</a>' in main
    assert "Needs attention" not in main
    assert "Organization token exchange" not in main
    assert 'href="/login"' not in main


def test_organizations_of_a_user_are_listed(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    create_organization(hub, "others", create_user(hub, "bob"))
    with browser_of(hub, ada) as client:
        main = main_of(client.get("/").text)
    assert 'href="/acme"' in main
    assert "admin" in main
    assert "others" not in main
    assert EMPTY not in main


@pytest.mark.parametrize(("count", "more"), [(50, None), (51, "1 more {}"), (60, "10 more {}s")])
def test_long_lists_are_shortened(hub: RunningHub, count: int, more: str | None) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    add_to_many_organizations(hub, bob, count)
    invite_to_all_organizations(hub, ada)
    with browser_of(hub, ada) as invited, browser_of(hub, bob) as member, hub.client() as visitor:
        waiting, own, public = invited.get("/").text, member.get("/").text, visitor.get("/bob").text
    assert (waiting.count("invites you"), own.count("<li><span"), public.count("<li><span")) == (50, 50, 50)
    for page, what in ((waiting, "invitation"), (own, "organization"), (public, "organization")):
        assert (" more " in page) is (more is not None)
        assert more is None or f">{more.format(what)}<" in page


def test_foreign_names_are_escaped(hub: RunningHub) -> None:
    from hubgate.server.accounts import own_account

    ada = create_user(hub, "ada")
    trick = "<b>Ada</b> \u202egnp.exe"
    hub.call(lambda opened: own_account.set_profile(opened.accounts, ada, trick, ""))
    with browser_of(hub, ada) as client:
        page = client.get("/").text
    assert "\u202e" not in page
    assert "<b>Ada" not in page
    assert "<bdi>&lt;b&gt;Ada&lt;/b&gt; gnp.exe</bdi>" in page


def test_repos_of_a_user_and_of_their_organizations_are_listed(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", bob, ada="read")
    create_organization(hub, "others", bob)
    with api(hub, create_token(hub, bob)) as client:
        for name in ("acme/theirs", "others/public", "bobs"):
            create_repo(client, name, private=name == "acme/theirs")
    with api(hub, create_token(hub, ada)) as client:
        create_repo(client, "mine")
    with browser_of(hub, ada) as client:
        main = main_of(client.get("/").text)
    assert 'href="/ada/mine"' in main
    assert 'href="/acme/theirs"' in main
    assert "others/public" not in main
    assert "bob/bobs" not in main
