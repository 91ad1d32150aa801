"""Mail about discussions, and their list on the home page: who gets it, who does not, and how much."""

from collections.abc import Iterator

import httpx
import pytest
from tests.bed.people import (
    api,
    browser_of,
    create_organization,
    create_token,
    create_user,
    link_in,
    mails_to,
    submit,
)
from tests.bed.repos import create_repo, send_commit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import operator_actions, own_account
from hubgate.server.accounts.model import User
from hubgate.server.accounts.organizations import members
from hubgate.server.audit.model import SYSTEM

API = "/api/models/ada/tiny/discussions"


class Scene:
    """Ada with her public repo ada/tiny, and other users with their clients."""

    def __init__(self, hub: RunningHub, *names: str) -> None:
        self.hub = hub
        self.users: dict[str, User] = {}
        self.clients: dict[str, httpx.Client] = {}
        for name in ("ada", *names):
            self.add(name)
        create_repo(self.clients["ada"], "tiny")

    def add(self, name: str, *, verified: bool = True) -> None:
        self.users[name] = create_user(self.hub, name, verified=verified)
        self.clients[name] = api(self.hub, create_token(self.hub, self.users[name]))

    def open(self, by: str, description: str = "", at: str = API, title: str = "A question") -> None:
        answer = self.clients[by].post(at, json={"title": title, "description": description})
        assert answer.status_code == 200, answer.text

    def comment(self, by: str, text: str = "more", num: int = 1, at: str = API) -> None:
        answer = self.clients[by].post(f"{at}/{num}/comment", json={"comment": text})
        assert answer.status_code == 201, answer.text

    def mails(self, name: str) -> list[str]:
        """The first sentence of each mail about a discussion."""
        found = [mail for mail in mails_to(self.hub, f"{name}@example.org", 0) if " #" in mail["Subject"]]
        return [mail.get_content().partition(" See ")[0] for mail in found]


@pytest.fixture
def scene(hub: RunningHub) -> Iterator[Scene]:
    started = Scene(hub, "bob", "carl", "dora")
    yield started
    for client in started.clients.values():
        client.close()


@pytest.mark.one_engine
def test_owner_participants_and_mentioned_users_get_mail(scene: Scene) -> None:
    scene.open("bob", "What does @carl think? And @Nobody, a@dora.example, `@dora`?")
    assert scene.mails("ada") == ["bob opened this discussion."]
    assert scene.mails("carl") == ["bob mentioned you."]
    assert (scene.mails("bob"), scene.mails("dora")) == ([], [])
    (mail,) = [mail for mail in mails_to(scene.hub, "carl@example.org") if " #" in mail["Subject"]]
    assert mail["Subject"] == "ada/tiny #1: A question"
    assert link_in(mail) == "/ada/tiny/discussions/1"
    assert "turn these mails off" in mail.get_content()
    scene.comment("carl", "Nothing.")
    assert scene.mails("bob") == ["carl commented."]
    assert scene.clients["ada"].post(f"{API}/1/status", json={"status": "closed"}).status_code == 200
    assert scene.mails("carl")[1:] == scene.mails("bob")[1:] == ["ada closed this discussion."]
    assert len(scene.mails("ada")) == 2


@pytest.mark.one_engine
def test_pull_request_sends_mail_when_it_is_opened_and_merged(scene: Scene) -> None:
    opened = send_commit(scene.clients["bob"], "ada/tiny", {"idea.txt": b"x"}, query="?create_pr=1")
    assert opened.status_code == 200, opened.text
    assert scene.mails("ada") == ["bob opened this pull request."]
    assert scene.clients["ada"].post(f"{API}/1/merge").status_code == 200
    assert scene.mails("bob") == ["ada merged this pull request."]


@pytest.mark.one_engine
def test_mail_can_be_turned_off(scene: Scene) -> None:
    with browser_of(scene.hub, scene.users["ada"]) as browser:
        saved = submit(browser, "/settings/profile", "/settings/discussion-mail")
        assert saved.status_code == 303
        assert 'name="discussion_mail" value="on" autocomplete' in browser.get("/settings/profile").text
        scene.open("bob", "@ada?")
        assert scene.mails("ada") == []
        assert "Mentions you" in browser.get("/").text
        assert (
            submit(browser, "/settings/profile", "/settings/discussion-mail", discussion_mail="on").status_code == 303
        )
        assert 'name="discussion_mail" value="on" checked' in browser.get("/settings/profile").text
    scene.comment("bob")
    assert scene.mails("ada") == ["bob commented."]


@pytest.mark.one_engine
def test_only_users_who_may_see_the_repo_get_mail(scene: Scene) -> None:
    """Not a mentioned stranger, not a former member, not a disabled user, not an unverified address."""
    acme = create_organization(scene.hub, "acme", scene.users["ada"], bob="read", carl="read")
    scene.add("fred", verified=False)
    create_repo(scene.clients["ada"], "acme/secret", private=True)
    at = "/api/models/acme/secret/discussions"
    scene.open("ada", "@bob @carl @dora @fred", at)
    assert (scene.mails("bob"), scene.mails("carl"), scene.mails("dora")) == (["ada mentioned you."],) * 2 + ([],)
    scene.hub.call(lambda opened: members.remove(opened.accounts, acme, scene.users["bob"], SYSTEM))
    scene.hub.call(lambda opened: operator_actions.disable(opened.accounts, scene.users["carl"]))
    scene.comment("ada", "@bob @carl @dora", at=at)
    assert [len(scene.mails(name)) for name in ("bob", "carl", "dora", "fred")] == [1, 1, 0, 0]
    with browser_of(scene.hub, scene.users["bob"]) as bob, browser_of(scene.hub, scene.users["ada"]) as ada:
        assert "acme/secret" not in bob.get("/").text
        assert "acme/secret" in ada.get("/").text


def test_mail_from_one_user_to_another_is_limited(scene: Scene) -> None:
    scene.open("ada")
    for _ in range(8):
        scene.comment("bob", "@ada @dora")
    assert (len(scene.mails("ada")), len(scene.mails("dora"))) == (5, 5)
    scene.comment("carl")
    assert scene.mails("ada")[5:] == ["carl commented."], "another sender has a limit of their own"
    scene.hub.clock.advance(60 * 60 + 1)
    scene.comment("bob")
    assert scene.mails("ada")[6:] == ["bob commented."]
    with browser_of(scene.hub) as browser:
        assert submit(browser, "/reset", "/reset", email="ada@example.org").status_code == 200
    assert [mail for mail in mails_to(scene.hub, "ada@example.org") if "Reset" in mail["Subject"]], "not affected"


@pytest.mark.one_engine
def test_edits_and_reactions_send_no_mail(scene: Scene) -> None:
    scene.open("ada")
    scene.comment("bob")
    first = scene.clients["ada"].get(f"{API}/1").json()["events"][1]["id"]
    at = f"{API}/1/comment/{first}"
    assert scene.clients["bob"].post(f"{at}/edit", json={"content": "@carl"}).status_code == 200
    assert scene.clients["carl"].post(f"{at}/reaction", json={"reaction": "👍"}).status_code == 200
    assert (scene.mails("carl"), scene.mails("bob"), len(scene.mails("ada"))) == ([], [], 1)
    with browser_of(scene.hub, scene.users["carl"]) as carl:
        assert "Mentions you" in carl.get("/").text


def test_users_mentioned_only_in_a_hidden_comment_take_part_no_longer(scene: Scene) -> None:
    """Carl is mentioned again elsewhere and Ada owns the repo, so both still take part."""
    scene.open("bob", "@carl?")
    scene.comment("bob", "@ada @Carl @dora: buy now")
    assert [len(scene.mails(name)) for name in ("ada", "carl", "dora")] == [2, 2, 1]
    spam = scene.clients["ada"].get(f"{API}/1").json()["events"][1]["id"]
    scene.hub.clock.advance(2 * 24 * 60 * 60)
    scene.hub.call(lambda opened: own_account.rename(opened.accounts, scene.users["dora"], "dorothy"))
    assert scene.clients["ada"].post(f"{API}/1/comment/{spam}/hide").status_code == 200
    scene.comment("bob")
    assert [len(scene.mails(name)) for name in ("ada", "carl", "dora")] == [3, 3, 1]
    shown = {}
    for name in ("ada", "carl", "dora"):
        with browser_of(scene.hub, scene.users[name]) as browser:
            page = browser.get("/").text
            shown[name] = ("Your discussions" in page, "Mentions you" in page)
    assert shown == {"ada": (True, False), "carl": (True, True), "dora": (False, False)}


def test_home_page_lists_open_discussions_in_the_order_of_activity(scene: Scene) -> None:
    for title in ("First thing", "Second thing", "Third thing"):
        scene.open("bob", title=title)
        scene.hub.clock.advance(60)
    scene.comment("ada", num=1)
    assert scene.clients["ada"].post(f"{API}/2/status", json={"status": "closed"}).status_code == 200
    with browser_of(scene.hub, scene.users["bob"]) as bob, browser_of(scene.hub, scene.users["dora"]) as dora:
        page = bob.get("/").text
        places = [page.find(title) for title in ("First thing", "Third thing")]
        assert 0 < places[0] < places[1]
        assert "Second thing" not in page
        assert "Your discussions" not in dora.get("/").text


@pytest.mark.one_engine
def test_hostile_title_stays_in_the_subject(scene: Scene) -> None:
    scene.open("bob", title="Hi\r\nBcc: eve@example.org =?utf-8?q?=0AX?= \u202eevil")
    (mail,) = [mail for mail in mails_to(scene.hub, "ada@example.org") if " #" in mail["Subject"]]
    assert mail["Bcc"] is None
    assert mail["To"] == "ada@example.org"
    assert "\u202e" not in mail["Subject"]
