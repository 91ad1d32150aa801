"""Discussions in the API: opening, reading, listing, commenting, editing, hiding, title, status, pin, reactions."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import own_account
from hubgate.server.audit.model import SYSTEM

REPO = "/api/models/ada/tiny"
DISCUSSIONS = f"{REPO}/discussions"


def opened(client: httpx.Client, title: str = "A question", description: str = "Why?", **more: Any) -> int:
    answer = client.post(DISCUSSIONS, json={"title": title, "description": description, **more})
    assert answer.status_code == 200, answer.text
    num: int = answer.json()["num"]
    return num


def details(client: httpx.Client, num: int = 1) -> dict[str, Any]:
    answer = client.get(f"{DISCUSSIONS}/{num}?diff=1")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def commented(client: httpx.Client, text: str, num: int = 1) -> dict[str, Any]:
    answer = client.post(f"{DISCUSSIONS}/{num}/comment", json={"comment": text})
    assert answer.status_code == 201, answer.text
    message: dict[str, Any] = answer.json()["newMessage"]
    return message


def kinds(client: httpx.Client) -> list[str]:
    events = [one["payload"]["event"] for one in client.get(f"{REPO}/events").json()]
    return [f"{event['scope']}/{event['action']}" for event in events]


@pytest.fixture
def ada(hub: RunningHub) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        create_repo(client, "tiny")
        yield client


@pytest.fixture
def eve(hub: RunningHub) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, create_user(hub, "eve"))) as client:
        yield client


@pytest.mark.one_engine
def test_discussion_has_its_description_as_first_event(ada: httpx.Client, eve: httpx.Client, hub: RunningHub) -> None:
    answer = eve.post(DISCUSSIONS, json={"title": "  A \n question ", "description": "**Why?**", "pullRequest": False})
    assert answer.json() == {"num": 1, "url": f"{hub.url}/ada/tiny/discussions/1", "pullRequest": False}
    with hub.client() as anyone:
        found = details(anyone)
    assert (found["title"], found["status"], found["isPullRequest"], found["pinned"]) == (
        "A question",
        "open",
        False,
        False,
    )
    assert (found["author"]["name"], found["author"]["fullname"]) == ("eve", "eve")
    assert found["repo"] == {"name": "ada/tiny", "type": "model"}
    (first,) = found["events"]
    assert (first["type"], first["author"]["name"]) == ("comment", "eve")
    latest = first["data"]["latest"]
    assert (latest["raw"], latest["html"].strip()) == ("**Why?**", "<p><strong>Why?</strong></p>")
    assert "changes" not in found
    assert "diff" not in found
    assert details(ada) == found, "the same answer for everyone"
    assert kinds(ada) == ["repo/create", "discussion/create"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"title": "ab"},
        {"title": "  ab  "},
        {"title": "x" * 201},
        {"title": "abc", "description": "x" * 65_537},
        {"title": 5},
        {"title": "abc", "pullRequest": "yes"},
        {"title": "a\0bc"},
    ],
)
@pytest.mark.one_engine
def test_invalid_discussion_is_rejected(ada: httpx.Client, body: dict[str, Any]) -> None:
    assert ada.post(DISCUSSIONS, json=body).status_code == 422
    assert ada.get(DISCUSSIONS).json()["count"] == 0


def test_list_is_filtered_and_counted(ada: httpx.Client, eve: httpx.Client) -> None:
    opened(eve, "First 100% thing")
    opened(ada, "Second thing")
    opened(eve, "A change", pullRequest=True)
    commented(ada, "one more")
    assert ada.post(f"{DISCUSSIONS}/2/status", json={"status": "closed"}).status_code == 200

    def numbers(query: str) -> list[int]:
        answer = ada.get(f"{DISCUSSIONS}?{query}").json()
        assert answer["count"] == len(answer["discussions"])
        return [one["num"] for one in answer["discussions"]]

    assert numbers("") == [3, 2, 1]
    assert numbers("status=open") == [3, 1]
    assert numbers("status=closed") == [2]
    assert numbers("type=pull_request") == [3]
    assert numbers("type=discussion&author=EVE") == [1]
    assert numbers("search=THING") == [2, 1]
    assert numbers("search=0%25") == [1], "a percent sign is not a wildcard"
    assert numbers("author=nobody") == []
    for name in ("type", "status"):
        assert numbers(f"{name}=all") == numbers(f"{name}=") == [3, 2, 1]
        refused = ada.get(f"{DISCUSSIONS}?{name}=merged")
        assert (refused.status_code, refused.json()["error"].startswith(f"{name} must be one of all, ")) == (400, True)
    listed = ada.get(DISCUSSIONS).json()["discussions"]
    assert [one["numComments"] for one in listed] == [0, 0, 1]
    assert [one["status"] for one in listed] == ["draft", "closed", "open"]


def test_search_finds_letters_outside_ascii(ada: httpx.Client) -> None:
    opened(ada, "Ärger mit Größen")
    opened(ada, "Kein ärger")
    for search in ("Ärger", "ÄRGER MIT", "GRößEN"):
        found = ada.get(DISCUSSIONS, params={"search": search}).json()["discussions"]
        assert 1 in [one["num"] for one in found], search


@pytest.mark.one_engine
def test_unstorable_text_is_rejected(ada: httpx.Client) -> None:
    opened(ada)
    for query in ("search=%00", "author=%00", "search=%ff"):
        assert ada.get(f"{DISCUSSIONS}?{query}").status_code in (400, 422), query
    for text in (b'{"comment": "a\\u0000b"}', b'{"comment": "\\ud800"}', b'{"comment": "\xff"}'):
        answer = ada.post(f"{DISCUSSIONS}/1/comment", content=text, headers={"content-type": "application/json"})
        assert answer.status_code in (400, 422), text
    for address in ("1%00", "1/comment/%00/edit", "%d9%a1"):
        assert ada.post(f"{DISCUSSIONS}/{address}", json={"content": "x"}).status_code in (400, 404, 405), address


@pytest.mark.one_engine
def test_returned_events_equal_the_listed_ones(ada: httpx.Client, eve: httpx.Client) -> None:
    opened(eve)
    comment = commented(ada, "Because.")
    at = f"{DISCUSSIONS}/1/comment/{comment['id'].upper()}"
    edited = ada.post(f"{at}/edit", json={"content": "Because of *that*."}).json()["updatedComment"]
    assert edited["data"]["latest"]["raw"] == "Because of *that*."
    assert (edited["data"]["edited"], edited["data"]["numEdits"], len(edited["data"]["history"])) == (True, 1, 1)
    closed = ada.post(f"{DISCUSSIONS}/1/status", json={"status": "closed", "comment": "Done"}).json()["newStatus"]
    titled = ada.patch(f"{DISCUSSIONS}/1/title", json={"title": "Answered"}).json()["newTitle"]
    assert titled["data"] == {"from": "A question", "to": "Answered"}
    events = details(eve)["events"]
    assert [event["type"] for event in events] == ["comment", "comment", "comment", "status-change", "title-change"]
    assert [events[1], *events[3:]] == [edited, closed, titled]
    assert events[2]["data"]["latest"]["raw"] == "Done"
    assert (details(eve)["title"], details(eve)["status"]) == ("Answered", "closed")
    assert kinds(ada)[1:] == [
        "discussion/create",
        "discussion.comment/create",
        "discussion.comment/update",
        "discussion.comment/create",
        "discussion/update",
        "discussion/update",
    ]


@pytest.mark.one_engine
def test_text_of_a_hidden_comment_is_gone(ada: httpx.Client, eve: httpx.Client) -> None:
    opened(ada)
    comment = commented(eve, "the secret word")
    at = f"{DISCUSSIONS}/1/comment/{comment['id']}"
    assert eve.post(f"{at}/reaction", json={"reaction": "🎉"}).status_code == 200
    hidden = ada.post(f"{at}/hide").json()["updatedComment"]
    assert (hidden["data"]["hidden"], hidden["data"]["hiddenBy"]) == (True, "ada")
    assert hidden["data"]["latest"]["raw"] == "This comment has been hidden"
    assert hidden["data"]["reactions"] == []
    assert details(eve)["events"][1] == hidden
    assert "secret word" not in str(details(ada))
    payload = ada.get(f"{REPO}/events").json()[-1]["payload"]
    assert (payload["comment"]["hidden"], "content" in payload["comment"]) == (True, False)
    assert "secret word" not in ada.get(f"{REPO}/events").text, "not in the comment's own event either"
    refused = [
        ada.post(f"{at}/hide"),
        eve.post(f"{at}/edit", json={"content": "again"}),
        eve.post(f"{at}/reaction", json={"reaction": "🎉"}),
    ]
    assert [answer.status_code for answer in refused] == [409, 409, 409]


@pytest.mark.one_engine
def test_comments_belong_to_their_authors(ada: httpx.Client, eve: httpx.Client, hub: RunningHub) -> None:
    """Only its author can edit a comment, not the owner of the repo; its author and writers can hide it."""
    opened(ada)
    comment = commented(eve, "mine")
    at = f"{DISCUSSIONS}/1/comment/{comment['id']}"
    with api(hub, create_token(hub, create_user(hub, "mallory"))) as mallory, hub.client() as anyone:
        for client, status in ((ada, 403), (mallory, 403), (anyone, 401)):
            assert client.post(f"{at}/edit", json={"content": "forged"}).status_code == status
        for client, status in ((mallory, 403), (anyone, 401)):
            assert client.post(f"{at}/hide").status_code == status
        assert anyone.post(f"{DISCUSSIONS}/1/comment", json={"comment": "hi"}).status_code == 401
        assert anyone.post(DISCUSSIONS, json={"title": "abc"}).status_code == 401
        assert mallory.post(f"{DISCUSSIONS}/1/pin", json={"pinned": True}).status_code == 403
        assert mallory.post(f"{DISCUSSIONS}/1/title", json={"title": "forged"}).status_code == 403
    for wrong in ("0" * 24, "x", details(ada)["events"][0]["id"][:-1] + "g"):
        assert eve.post(f"{DISCUSSIONS}/1/comment/{wrong}/edit", json={"content": "x"}).status_code == 404
    other = opened(ada)
    assert eve.post(f"{DISCUSSIONS}/{other}/comment/{comment['id']}/edit", json={"content": "x"}).status_code == 404
    assert eve.post(f"{at}/hide").status_code == 200


@pytest.mark.parametrize("body", [{}, {"comment": ""}, {"comment": " \n"}, {"comment": "x" * 65_537}, {"comment": 1}])
@pytest.mark.one_engine
def test_invalid_comment_is_rejected(ada: httpx.Client, body: dict[str, Any]) -> None:
    opened(ada)
    assert ada.post(f"{DISCUSSIONS}/1/comment", json=body).status_code == 422


@pytest.mark.one_engine
def test_reactions_toggle(ada: httpx.Client, eve: httpx.Client) -> None:
    opened(ada)
    at = f"{DISCUSSIONS}/1/comment/{details(ada)['events'][0]['id']}/reaction"
    for client in (ada, eve):
        comment = client.post(at, json={"reaction": "👍"}).json()["updatedComment"]
    (thumbs,) = comment["data"]["reactions"]
    assert (thumbs["reaction"], sorted(thumbs["users"]), thumbs["count"]) == ("👍", ["ada", "eve"], 2)
    eve.post(at, json={"reaction": "🚀"})
    comment = ada.post(at, json={"reaction": "👍"}).json()["updatedComment"]
    assert {one["reaction"]: one["users"] for one in comment["data"]["reactions"]} == {"👍": ["eve"], "🚀": ["eve"]}
    assert details(ada)["events"][0] == comment
    for wrong in ("", "x", "👍👍"):
        assert ada.post(at, json={"reaction": wrong}).status_code == 422
    assert kinds(ada)[1:] == ["discussion/create"], "reactions have no event"


@pytest.mark.one_engine
def test_pin_is_shown_and_has_one_event(ada: httpx.Client) -> None:
    opened(ada)
    for _ in range(2):
        assert ada.post(f"{DISCUSSIONS}/1/pin", json={"pinned": True}).json() == {"pinned": True}
    assert details(ada)["pinned"] is True
    assert ada.get(DISCUSSIONS).json()["discussions"][0]["pinned"] is True
    assert kinds(ada)[1:] == ["discussion/create", "discussion/update"], "the second request changed nothing"
    assert ada.get(f"{REPO}/events").json()[-1]["payload"]["discussion"]["pinned"] is True


@pytest.mark.one_engine
def test_removed_discussion_is_gone_with_its_comments(ada: httpx.Client) -> None:
    opened(ada)
    commented(ada, "gone soon")
    assert ada.delete(f"{DISCUSSIONS}/1").status_code == 200
    assert ada.get(f"{DISCUSSIONS}/1").status_code == 404
    assert ada.post(f"{DISCUSSIONS}/1/comment", json={"comment": "late"}).status_code == 404
    assert kinds(ada)[-1] == "discussion/delete"
    assert "gone soon" not in ada.get(f"{REPO}/events").text
    assert opened(ada) == 2, "numbers are not used twice"
    assert [event["data"]["latest"]["raw"] for event in details(ada, 2)["events"]] == ["Why?"]


@pytest.mark.one_engine
def test_longest_comment_may_be_escaped(ada: httpx.Client) -> None:
    """A JSON encoder may write an emoji as twelve ASCII characters."""
    opened(ada)
    text = "\N{ROCKET}" * 65_536
    body = json.dumps({"comment": text})
    assert len(body) > 12 * 65_536
    sent = ada.post(f"{DISCUSSIONS}/1/comment", content=body, headers={"content-type": "application/json"})
    assert sent.status_code == 201
    assert sent.json()["newMessage"]["data"]["latest"]["raw"] == text


@pytest.mark.one_engine
def test_discussions_can_be_turned_off(ada: httpx.Client, eve: httpx.Client) -> None:
    """Nobody can open one or comment then; the owner can still close and delete, and everything stays readable."""
    opened(eve)
    draft = opened(eve, "A change", pullRequest=True)
    assert ada.put(f"{REPO}/settings", json={"discussionsDisabled": True}).status_code == 200
    for client in (ada, eve):
        assert client.post(DISCUSSIONS, json={"title": "Another"}).status_code == 403
        assert client.post(f"{DISCUSSIONS}/1/comment", json={"comment": "hi"}).status_code == 403
    assert details(eve)["num"] == 1
    assert ada.post(f"{DISCUSSIONS}/1/status", json={"status": "closed"}).status_code == 200
    assert eve.post(f"{DISCUSSIONS}/1/status", json={"status": "open"}).status_code == 403
    assert eve.post(f"{DISCUSSIONS}/{draft}/status", json={"status": "open"}).status_code == 403
    assert ada.delete(f"{DISCUSSIONS}/1").status_code == 200


@pytest.mark.one_engine
def test_deleted_author_is_left_out(ada: httpx.Client, hub: RunningHub) -> None:
    bob = create_user(hub, "bob")
    with api(hub, create_token(hub, bob)) as client:
        opened(client)
        at = f"{DISCUSSIONS}/1/comment/{details(client)['events'][0]['id']}"
        assert client.post(f"{at}/reaction", json={"reaction": "👍"}).status_code == 200

    hub.call(lambda opened_hub: own_account.delete(opened_hub.accounts, bob, SYSTEM))
    found = details(ada)
    assert "author" not in found
    assert "author" not in found["events"][0]
    assert found["events"][0]["data"]["reactions"] == []
    assert "author" not in ada.get(DISCUSSIONS).json()["discussions"][0]


@pytest.mark.one_engine
def test_private_repo_hides_its_discussions(hub: RunningHub, ada: httpx.Client, eve: httpx.Client) -> None:
    user = create_user(hub, "olga")
    create_organization(hub, "acme", user)
    with api(hub, create_token(hub, user)) as olga:
        create_repo(olga, "acme/secret", private=True)
        at = "/api/models/acme/secret/discussions"
        assert olga.post(at, json={"title": "Internal"}).status_code == 200
        for number in (1, 9):
            for answer in (
                eve.get(f"{at}/{number}"),
                eve.post(f"{at}/{number}/comment", json={"comment": "x"}),
                eve.post(f"{at}/{number}/merge"),
            ):
                assert (answer.status_code, answer.headers["x-error-code"]) == (404, "RepoNotFound")


@pytest.mark.one_engine
def test_overview_counts_discussions_in_public_repos(ada: httpx.Client, eve: httpx.Client) -> None:
    opened(eve)
    opened(eve, pullRequest=True)
    opened(ada)
    commented(eve, "hers", num=3)
    create_repo(eve, "secret", private=True)
    assert eve.post("/api/models/eve/secret/discussions", json={"title": "Internal"}).status_code == 200
    assert eve.get("/api/users/eve/overview").json()["numDiscussions"] == 2


@pytest.mark.one_engine
def test_only_the_latest_edits_are_listed(ada: httpx.Client) -> None:
    """All edits of all comments would be a response of 60 MB."""
    opened(ada)
    (first,) = ada.get(f"{DISCUSSIONS}/1").json()["events"]
    for number in range(12):
        answer = ada.post(f"{DISCUSSIONS}/1/comment/{first['id']}/edit", json={"content": f"text {number}"})
    (event,) = ada.get(f"{DISCUSSIONS}/1").json()["events"]
    assert event == answer.json()["updatedComment"]
    assert (event["data"]["numEdits"], len(event["data"]["history"])) == (12, 10)
    assert event["data"]["history"][-1]["updatedAt"] == event["data"]["latest"]["updatedAt"]
