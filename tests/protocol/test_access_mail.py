"""Mail about requests for access to gated repos: who gets it, who does not, and how much."""

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
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User

REPO = "acme/llm"
AT = f"/api/models/{REPO}/user-access-request"


class Scene:
    """Ada and Olga are admins of acme, which owns a gated model; Wim may write there; Bob and Carl are strangers."""

    def __init__(self, hub: RunningHub) -> None:
        self.hub = hub
        self.users: dict[str, User] = {name: create_user(hub, name) for name in ("ada", "olga", "wim", "bob", "carl")}
        create_organization(hub, "acme", self.users["ada"], olga="admin", wim="write")
        self.clients: dict[str, httpx.Client] = {
            name: api(hub, create_token(hub, user)) for name, user in self.users.items()
        }
        create_repo(self.clients["ada"], REPO)
        self.configure(gated="manual")

    def configure(self, **settings: object) -> None:
        assert self.clients["ada"].put(f"/api/models/{REPO}/settings", json=settings).status_code == 200

    def ask(self, by: str) -> None:
        assert self.clients[by].post(f"/api/models/{REPO}/ask-access").status_code == 200

    def cancel(self, by: str) -> None:
        assert self.clients[by].post(f"{AT}/cancel").status_code == 200

    def decide(self, status: str, user: str = "bob", by: str = "wim", reason: str = "") -> None:
        body = {"status": status, "user": user, "rejectionReason": reason}
        assert self.clients[by].post(f"{AT}/handle", json=body).status_code == 200

    def mails(self, name: str) -> list[str]:
        """The subject and the first sentence of each mail about access."""
        found = [mail for mail in mails_to(self.hub, f"{name}@example.org", 0) if mail["Subject"].startswith("Access")]
        return [f"{mail['Subject']}. {mail.get_content().partition('.')[0]}." for mail in found]

    def turn_mail_off(self, name: str) -> None:
        with browser_of(self.hub, self.users[name]) as browser:
            assert submit(browser, "/settings/profile", "/settings/discussion-mail").status_code == 303


@pytest.fixture
def scene(hub: RunningHub) -> Iterator[Scene]:
    started = Scene(hub)
    yield started
    for client in started.clients.values():
        client.close()


@pytest.mark.one_engine
def test_admins_get_mail_about_a_request_and_the_requester_about_the_decision(scene: Scene) -> None:
    scene.ask("bob")
    scene.ask("bob")
    assert scene.mails("ada") == scene.mails("olga") == [f"Access request: {REPO}. bob asks for access."]
    assert scene.mails("wim") == scene.mails("bob") == []
    (mail,) = [mail for mail in mails_to(scene.hub, "ada@example.org") if "Access" in mail["Subject"]]
    assert link_in(mail) == f"/{REPO}/settings/access"
    assert "turn these mails off" in mail.get_content()
    scene.decide("accepted")
    scene.decide("pending")
    scene.decide("rejected", reason="See https://evil.example")
    assert scene.mails("bob") == [
        f"Access granted: {REPO}. Your request was accepted, so you can read its files.",
        f"Access rejected: {REPO}. Your request was rejected, so you cannot read its files.",
    ]
    last = mails_to(scene.hub, "bob@example.org")[-1]
    assert (link_in(last), "evil" in last.get_content()) == (f"/{REPO}", False)
    assert len(scene.mails("ada")) == 1


@pytest.mark.one_engine
def test_owner_of_a_personal_repo_gets_mail(scene: Scene) -> None:
    create_repo(scene.clients["carl"], "own")
    assert scene.clients["carl"].put("/api/models/carl/own/settings", json={"gated": "manual"}).status_code == 200
    assert scene.clients["bob"].post("/api/models/carl/own/ask-access").status_code == 200
    assert scene.mails("carl") == ["Access request: carl/own. bob asks for access."]


@pytest.mark.one_engine
def test_automatic_gate_sends_no_mail(scene: Scene) -> None:
    scene.configure(gated="auto")
    scene.ask("bob")
    assert scene.mails("ada") == scene.mails("bob") == []


@pytest.mark.one_engine
def test_grant_sends_mail_only_to_a_user_who_asked(scene: Scene) -> None:
    scene.ask("bob")
    for name in ("bob", "carl"):
        assert scene.clients["wim"].post(f"{AT}/grant", json={"user": name}).status_code == 200
    assert (len(scene.mails("bob")), scene.mails("carl")) == (1, [])
    scene.decide("rejected", "carl")
    assert scene.mails("carl") == []


def test_access_mail_can_be_turned_off(scene: Scene) -> None:
    for name in ("ada", "bob"):
        scene.turn_mail_off(name)
    scene.ask("bob")
    scene.decide("accepted")
    assert (scene.mails("ada"), scene.mails("bob"), len(scene.mails("olga"))) == ([], [], 1)


@pytest.mark.one_engine
def test_private_repo_is_not_named_to_its_requester(scene: Scene) -> None:
    scene.ask("bob")
    scene.configure(private=True)
    scene.decide("accepted")
    assert scene.mails("bob") == []


@pytest.mark.one_engine
def test_requests_of_one_user_send_at_most_five_mails_an_hour_to_each_admin(scene: Scene) -> None:
    for _ in range(7):
        scene.ask("bob")
        scene.cancel("bob")
    assert (len(scene.mails("ada")), len(scene.mails("olga"))) == (5, 5)
    scene.ask("carl")
    assert scene.mails("ada")[5:] == [f"Access request: {REPO}. carl asks for access."]
    for _ in range(4):
        scene.decide("accepted", "carl")
        scene.decide("rejected", "carl")
    assert len(scene.mails("carl")) == 5
    scene.hub.clock.advance(60 * 60 + 1)
    scene.ask("bob")
    assert len(scene.mails("ada")) == 7
