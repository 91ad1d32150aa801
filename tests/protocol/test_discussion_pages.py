"""The pages of discussions and pull requests over HTTP, without JavaScript: list, forms, conversation, changes."""

from collections.abc import Iterator
from html import unescape

import httpx
import pytest
from tests.bed.people import Page, api, browser_of, create_token, create_user, submit
from tests.bed.repos import create_commit, create_repo, head_of, send_commit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User

pytestmark = pytest.mark.one_engine

AT = "/ada/tiny/discussions"
API = "/api/models/ada/tiny"


@pytest.fixture
def ada(hub: RunningHub) -> User:
    user = create_user(hub, "ada")
    with api(hub, create_token(hub, user)) as client:
        create_repo(client, "tiny")
        create_commit(client, "ada/tiny", {"notes.txt": b"one\ntwo\n"})
    return user


@pytest.fixture
def owner(hub: RunningHub, ada: User) -> Iterator[httpx.Client]:
    with browser_of(hub, ada) as client:
        yield client


@pytest.fixture
def guest(hub: RunningHub, ada: User) -> Iterator[httpx.Client]:
    with browser_of(hub, create_user(hub, "eve")) as client:
        yield client


def opened(client: httpx.Client, title: str = "A question", description: str = "Why?", **more: str) -> str:
    answer = submit(client, f"{AT}/new", AT, title=title, description=description, **{"kind": "discussion", **more})
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def shown(client: httpx.Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, (answer.status_code, answer.headers.get("location"))
    return unescape(answer.text.partition("<main")[2].partition("</main>")[0])


def first_comment(hub: RunningHub, num: int = 1) -> str:
    with hub.client() as anyone:
        first: str = anyone.get(f"{API}/discussions/{num}").json()["events"][0]["id"]
    return first


def test_discussion_is_opened_changed_and_deleted(hub: RunningHub, owner: httpx.Client, guest: httpx.Client) -> None:
    at = opened(guest, "Which <data>?", "Is it **clean**? <script>alert(1)</script>")
    assert at == f"{AT}/1"
    page = shown(owner, at)
    assert "Which <data>?" in page
    assert "<strong>clean</strong>" in page
    assert "alert(1)" not in page
    answered = submit(owner, at, f"{at}/comment", comment="Yes, *very*.")
    assert answered.status_code == 303
    location, _, comment = answered.headers["location"].partition("#")
    assert (location, f'id="{comment}"' in shown(guest, at)) == (at, True)
    assert submit(guest, at, f"{at}/title", title="Answered").status_code == 303
    assert submit(guest, at, f"{at}/status", status="closed").status_code == 303
    page = shown(guest, at)
    assert "changed the title from" in page
    assert "closed this" in page
    assert "Reopen discussion" in page
    assert f'href="{AT}/1"' not in shown(guest, AT), "closed discussions are not listed by default"
    assert "Answered" in shown(guest, f"{AT}?status=all")
    assert submit(owner, at, f"{at}/pin", pinned="on").status_code == 303
    assert "Pinned" in shown(guest, f"{AT}?status=closed")
    assert "permanently deletes" in shown(owner, f"{at}/delete")
    deleted = submit(owner, f"{at}/delete", f"{at}/delete")
    assert (deleted.status_code, deleted.headers["location"]) == (303, AT)
    assert owner.get(at).status_code == 404


def test_rejected_forms_show_the_typed_values(hub: RunningHub, owner: httpx.Client) -> None:
    refused = submit(owner, f"{AT}/new", AT, title="ab", description="x" * 65_537, kind="pull_request")
    page = unescape(refused.text)
    assert refused.status_code == 422
    assert "<title>Error: New discussion · " in page
    assert "A title must have 3 to 200 characters." in page
    assert "at most 65,536 characters" in page
    assert "x" * 65_537 in page
    assert 'value="pull_request" checked' in page
    at = opened(owner)
    for tail, field, value, message in (
        ("comment", "comment", "  ", "A comment cannot be empty."),
        ("title", "title", "ab", "A title must have 3 to 200 characters."),
        ("title", "title", "A question", "This is already the title"),
    ):
        refused = submit(owner, at, f"{at}/{tail}", **{field: value})
        assert refused.status_code in (409, 422)
        assert message in unescape(refused.text), tail
        assert "<title>Error: A question · " in refused.text
    comment = first_comment(hub)
    edit = f"{at}/comment/{comment}/edit"
    refused = submit(owner, edit, edit, content="")
    assert (refused.status_code, "A comment cannot be empty." in refused.text) == (422, True)
    assert "<title>Error: Edit comment · " in refused.text


def test_comments_are_edited_hidden_and_reacted_to(hub: RunningHub, owner: httpx.Client, guest: httpx.Client) -> None:
    at = opened(guest, description="the first text")
    comment = f"{at}/comment/{first_comment(hub)}"
    assert "Edit" in shown(guest, at)
    assert f'href="{comment}/edit"' not in shown(owner, at), "only its author edits it"
    assert owner.get(f"{comment}/edit").status_code == 403
    assert "the first text" in shown(guest, f"{comment}/edit")
    edited = submit(guest, f"{comment}/edit", f"{comment}/edit", content="the second text")
    assert edited.headers["location"] == f"{at}#{first_comment(hub)}"
    assert "the second text" in shown(guest, at)
    assert "· edited" in shown(guest, at)
    for client in (guest, owner):
        assert submit(client, at, f"{comment}/reaction", reaction="🎉").status_code == 303
    assert "🎉 2" in shown(guest, at)
    assert 'aria-pressed="true"' in shown(guest, at)
    assert submit(guest, at, f"{comment}/reaction", reaction="🎉").status_code == 303
    assert "🎉 1" in shown(guest, at)
    assert "the second text" in shown(owner, f"{comment}/hide")
    assert submit(owner, f"{comment}/hide", f"{comment}/hide").status_code == 303
    page = shown(guest, at)
    assert "the second text" not in page
    assert "This comment was hidden by" in page
    assert f'href="{comment}/edit"' not in page


def test_visitor_reads_and_is_asked_to_sign_in(hub: RunningHub, owner: httpx.Client) -> None:
    at = opened(owner)
    with hub.client() as visitor:
        page = shown(visitor, at)
        assert "Sign in" in page
        for word in ("<textarea", "Close discussion", "Pin<", "Edit", "Hide", "React"):
            assert word not in page, word
        asked = visitor.get(f"{AT}/new")
        assert (asked.status_code, asked.headers["location"]) == (303, "/login?next=%2Fada%2Ftiny%2Fdiscussions%2Fnew")
        assert "Discussions" in shown(visitor, "/ada/tiny")


def test_guest_sees_only_permitted_actions(owner: httpx.Client, guest: httpx.Client) -> None:
    at = opened(owner)
    page = shown(guest, at)
    assert "<textarea" in page
    for word in ("Close discussion", "Unpin", ">Pin<", f"{at}/delete", "Change the title"):
        assert word not in page, word


def test_pull_request_is_published_and_merged(hub: RunningHub, ada: User, owner: httpx.Client) -> None:
    at = opened(owner, "A change", kind="pull_request")
    page = shown(owner, at)
    assert "Draft" in page
    assert "git fetch origin refs/pr/1:pr/1" in page
    assert "no changes yet" in shown(owner, f"{at}/files")
    with api(hub, create_token(hub, ada)) as client:
        create_commit(client, "ada/tiny", {"notes.txt": b"one\nTWO <b>\n"}, rev="refs/pr/1", summary="Louder")
        assert submit(owner, at, f"{at}/status", status="open").status_code == 303
        page = shown(owner, at)
        assert "Louder" in page
        assert "There are no conflicts." in page
        changes = owner.get(f"{at}/files").text
        assert "<del>-two\n</del>" in changes
        assert "<ins>+TWO &lt;b&gt;\n</ins>" in changes
        assert 'href="/ada/tiny/blob/refs%2Fpr%2F1/notes.txt"' in changes
        merged = submit(owner, at, f"{at}/merge")
        assert (merged.status_code, merged.headers["location"]) == (303, at)
        page, sha = shown(owner, at), head_of(client, "ada/tiny")
    assert f'href="/ada/tiny/commit/{sha}"' in page
    assert "merged this" in page
    assert f'action="{at}/merge"' not in page
    assert "+TWO" in shown(owner, f"{at}/files")


def test_conflicts_are_listed_and_the_merge_is_not_offered(hub: RunningHub, ada: User, owner: httpx.Client) -> None:
    with api(hub, create_token(hub, ada)) as client:
        send_commit(client, "ada/tiny", {"notes.txt": b"theirs\n"}, query="?create_pr=1")
        before = Page(owner.get(f"{AT}/1")).hidden(f"{AT}/1/merge")
        create_commit(client, "ada/tiny", {"notes.txt": b"ours\n"})
    page = shown(owner, f"{AT}/1")
    assert "conflicts with" in page
    assert '<li class="mono"><bdi>notes.txt</bdi></li>' in page
    assert f'action="{AT}/1/merge"' not in page
    refused = owner.post(f"{AT}/1/merge", data=before)
    assert (refused.status_code, "conflicts with refs/heads/main: notes.txt" in unescape(refused.text)) == (409, True)


def test_long_conversation_has_pages(hub: RunningHub, ada: User, owner: httpx.Client) -> None:
    at = opened(owner)
    with api(hub, create_token(hub, ada)) as client:
        for number in range(60):
            assert client.post(f"{API}/discussions/1/comment", json={"comment": f"text {number}"}).status_code == 201
    first, second = shown(owner, at), shown(owner, f"{at}?page=2")
    assert ("text 48" in first, "text 49" in first, "text 49" in second) == (True, False, True)
    added = submit(owner, at, f"{at}/comment", comment="the last")
    assert added.headers["location"].startswith(f"{at}?page=2#")
    assert owner.get(f"{at}?page=3").status_code == 404


def test_list_is_filtered_and_says_when_nothing_matches(owner: httpx.Client) -> None:
    assert "Ask a question, or propose a change." in shown(owner, AT)
    opened(owner, "First thing")
    opened(owner, "Second thing", kind="pull_request")
    assert [name in shown(owner, f"{AT}?type=discussion") for name in ("First", "Second")] == [True, False]
    assert [name in shown(owner, f"{AT}?search=second") for name in ("First", "Second")] == [False, True]
    assert "Nothing matches." in shown(owner, f"{AT}?search=none")
    for page in ("0", "x"):
        assert owner.get(f"{AT}?page={page}").status_code == 404


def test_disabled_discussions_can_be_read(hub: RunningHub, ada: User, owner: httpx.Client) -> None:
    at = opened(owner)
    with api(hub, create_token(hub, ada)) as client:
        assert client.put(f"{API}/settings", json={"discussionsDisabled": True}).status_code == 200
    assert f'href="{AT}"' not in shown(owner, "/ada/tiny"), "the tab is gone"
    assert "turned off" in shown(owner, AT)
    page = shown(owner, at)
    assert "turned off" in page
    assert "<textarea" not in page
    assert "Why?" in page


def test_gate_hides_changes(hub: RunningHub, ada: User, owner: httpx.Client, guest: httpx.Client) -> None:
    with api(hub, create_token(hub, ada)) as client:
        send_commit(client, "ada/tiny", {"notes.txt": b"the secret\n"}, query="?create_pr=1")
        assert client.put(f"{API}/settings", json={"gated": "manual"}).status_code == 200
    page = shown(guest, f"{AT}/1/files")
    assert ("notes.txt" in page, "the secret" in page, "gated" in page) == (True, False, True)
    assert "the secret" in shown(owner, f"{AT}/1/files")


def test_merge_button_merges_only_the_commits_on_the_page(hub: RunningHub, ada: User, owner: httpx.Client) -> None:
    with api(hub, create_token(hub, create_user(hub, "eve"))) as eve:
        send_commit(eve, "ada/tiny", {"idea.txt": b"harmless"}, query="?create_pr=1")
        form = Page(owner.get(f"{AT}/1")).hidden(f"{AT}/1/merge")
        create_commit(eve, "ada/tiny", {"idea.txt": b"harmful"}, rev="refs/pr/1", summary="One more thing")
        refused = owner.post(f"{AT}/1/merge", data=form)
        assert refused.status_code == 409
        assert "has new commits" in refused.text
        assert "One more thing" in refused.text
        assert "idea.txt" not in eve.get(f"{API}/tree/main").text
    assert submit(owner, f"{AT}/1", f"{AT}/1/merge").status_code == 303
