"""Gated repos on pages: asking, waiting and withdrawing; the owner's decisions; the home page."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, fill_form, post, submit
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

CARD = """---
extra_gated_prompt: Promise to be kind
extra_gated_fields:
  Country: text
  I agree: checkbox
  Use:
    type: select
    options: [Research, "<b>Other</b>"]
---
# Model
"""
AT = "/acme/llm"
REQUESTS = f"{AT}/settings/access"


@dataclass
class Scene:
    hub: RunningHub
    ada: httpx.Client
    bob: httpx.Client
    visitor: httpx.Client
    script: httpx.Client


@pytest.fixture
def scene(hub: RunningHub) -> Iterator[Scene]:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as script:
        files = [{"path": "README.md", "content": CARD}, {"path": "weights.txt", "content": "secret weights"}]
        create_repo(script, "acme/llm", files=files)
        assert script.put("/api/models/acme/llm/settings", json={"gated": "manual"}).status_code == 200
        with browser_of(hub, ada) as own, browser_of(hub, bob) as other, browser_of(hub) as visitor:
            yield Scene(hub, own, other, visitor, script)


def ask(client: httpx.Client, **answers: str) -> httpx.Response:
    given = {"answer0": "Norway", "answer1": "yes", "answer2": "Research", **answers}
    return submit(client, AT, f"{AT}/ask-access", **given)


def test_user_asks_waits_and_withdraws(scene: Scene) -> None:
    page = scene.bob.get(AT).text
    assert "Promise to be kind" in page
    assert "<option>&lt;b&gt;Other&lt;/b&gt;</option>" in page
    assert "bob<wbr>@example" in page
    assert ask(scene.bob, answer0=" ").status_code == 422
    asked = ask(scene.bob)
    assert (asked.status_code, asked.headers["location"]) == (303, AT)
    assert "Waiting for <bdi>@acme</bdi>" in scene.bob.get(AT).text
    assert "Ask for access" not in scene.bob.get(AT).text
    assert submit(scene.bob, AT, f"{AT}/ask-access/cancel").status_code == 303
    assert "Ask for access" in scene.bob.get(AT).text
    assert scene.script.get("/api/models/acme/llm/user-access-request/pending").json() == []


@pytest.mark.parametrize(
    "changed",
    [
        CARD.replace("Country: text", "City: text"),
        CARD.replace("  Country: text\n  I agree: checkbox\n", "  I agree: checkbox\n  Country: text\n"),
        CARD.replace("kind", "honest"),
        CARD.replace("Research", "Business"),
    ],
)
def test_form_that_changed_since_it_was_shown_is_shown_again(scene: Scene, changed: str) -> None:
    """Answers are not stored under questions that the user has not seen."""
    given = {"answer0": "Norway", "answer1": "yes", "answer2": "Research"}
    send = fill_form(scene.bob, AT, f"{AT}/ask-access", **given)
    create_commit(scene.script, "acme/llm", {"README.md": changed.encode()})
    asked = send()
    assert (asked.status_code, asked.headers["location"]) == (303, AT)
    page = scene.bob.get(AT).text
    assert ("The questions have changed." in page, "Ask for access" in page) == (True, True)
    assert scene.script.get("/api/models/acme/llm/user-access-request/pending").json() == []
    assert ask(scene.bob).status_code == 303
    assert "Waiting for <bdi>@acme</bdi>" in scene.bob.get(AT).text


def test_owner_decides_about_requests(scene: Scene) -> None:
    ask(scene.bob)
    home = scene.ada.get("/").text
    assert f'href="{REQUESTS}"' in home
    assert "1 request for access" in home
    page = scene.ada.get(REQUESTS).text
    assert "bob" in page
    assert "Norway" in page
    accepted = post(scene.ada, f"{REQUESTS}/handle", user="bob", status="accepted")
    assert accepted.headers["location"] == REQUESTS
    assert "bob has access now." in scene.ada.get(REQUESTS).text
    assert "You have access" in scene.bob.get(AT).text
    assert "secret weights" in scene.bob.get(f"{AT}/blob/main/weights.txt").text
    assert "Revoke access" in scene.ada.get(f"{REQUESTS}?status=accepted").text
    post(scene.ada, f"{REQUESTS}/handle", user="bob", status="rejected", reason="No <i>time</i>")
    assert "rejected your request: <bdi>No &lt;i&gt;time&lt;/i&gt;</bdi>" in scene.bob.get(AT).text
    assert "secret weights" not in scene.bob.get(f"{AT}/blob/main/weights.txt").text
    assert "Needs attention" not in scene.ada.get("/").text
    again = post(scene.ada, f"{REQUESTS}/handle", user="bob", status="rejected")
    assert again.status_code == 303
    assert "The request of bob is already rejected." in scene.ada.get(REQUESTS).text


def test_owner_grants_access(scene: Scene) -> None:
    missing = submit(scene.ada, REQUESTS, f"{REQUESTS}/grant", user="nobody")
    assert (missing.status_code, "User not found." in missing.text) == (422, True)
    granted = submit(scene.ada, REQUESTS, f"{REQUESTS}/grant", user="bob")
    assert granted.headers["location"] == f"{REQUESTS}?status=accepted"
    page = scene.ada.get(granted.headers["location"]).text
    assert "@example" not in page
    assert "bob already has access." in submit(scene.ada, REQUESTS, f"{REQUESTS}/grant", user="bob").text
    assert "You have access" in scene.bob.get(AT).text


def test_visitor_is_asked_to_sign_in(scene: Scene) -> None:
    page = scene.visitor.get(AT).text
    assert "Sign in to ask for access" in page
    assert 'action="/acme/llm/ask-access"' not in page
    assert post(scene.visitor, f"{AT}/ask-access").status_code == 401


def test_gate_is_not_shown_to_owners_or_on_open_repos(scene: Scene) -> None:
    assert "Access to the files" not in scene.ada.get(AT).text
    assert scene.script.put("/api/models/acme/llm/settings", json={"gated": False}).status_code == 200
    assert "Access to the files" not in scene.bob.get(AT).text
    assert post(scene.bob, f"{AT}/ask-access", answer0="x", answer1="x", answer2="x").status_code == 400
    assert "The repo is not gated now" in scene.ada.get(REQUESTS).text


def test_strangers_do_not_see_requests(scene: Scene) -> None:
    assert scene.bob.get(REQUESTS).status_code == 403
    assert post(scene.bob, f"{REQUESTS}/handle", user="bob", status="accepted").status_code == 403
    assert post(scene.bob, f"{REQUESTS}/grant", user="bob").status_code == 403
    assert scene.bob.get(f"{AT}/user-access-report").status_code == 403
    report = scene.ada.get(f"{AT}/user-access-report")
    assert (report.status_code, report.json()) == (200, [])
