"""O70: no answer fills the memory or occupies the event loop, no matter what strangers put into a repo."""

import pytest
from tests.bed.call_counts import calls_on_loop
from tests.bed.disconnecting_clients import OTHER, client_from
from tests.bed.git import push_import, repo_url, run_git
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.hub.git.history import MAX_MESSAGE_BYTES

MIB = 1024 * 1024
COMMITS, MESSAGE = 60, 300 * 1024
REFS = 400
CARDS = 60


def _import() -> bytes:
    """Commits with long messages on `main`, and many branches at the first of them."""
    said = []
    for number in range(1, COMMITS + 1):
        message = f"commit {number}\n\n".encode() + b"<" * MESSAGE
        said.append(b"commit refs/heads/main\nmark :%d\ncommitter A <a@b> %d +0000\n" % (number, 10**9 + number))
        said.append(b"data %d\n" % len(message) + message + b"\n")
    said += [b"reset refs/heads/b%d\nfrom :1\n\n" % number for number in range(REFS)]
    return b"".join(said)


@pytest.fixture(scope="module")
def long_messages(shared_hub: RunningHub, tmp_path_factory: pytest.TempPathFactory) -> RunningHub:
    hub, folder = shared_hub, tmp_path_factory.mktemp("imported")
    token = create_token(hub, create_user(hub, "ada"))
    with api(hub, token) as ada:
        create_repo(ada, "talk")
    push_import(folder, _import(), repo_url(hub.url, "ada/talk", token))
    pushed = run_git(folder, "push", "-q", repo_url(hub.url, "ada/talk", token), "--all")
    assert pushed.returncode == 0, pushed.stderr
    return hub


def test_page_of_history_ends_when_messages_are_too_long(long_messages: RunningHub) -> None:
    with client_from(long_messages, OTHER) as client:
        target, seen = "/api/models/ada/talk/commits/main?limit=1000&expand=formatted", list[str]()
        while target:
            answer = client.get(target)
            assert len(answer.content) < 10 * MIB
            assert max(len(commit["message"]) for commit in answer.json()) <= MAX_MESSAGE_BYTES
            seen += [commit["title"] for commit in answer.json()]
            target = answer.links["next"]["url"] if "next" in answer.links else ""
    assert seen == [f"commit {number}" for number in range(COMMITS, 0, -1)]


def test_refs_are_rendered_off_the_event_loop(long_messages: RunningHub) -> None:
    with client_from(long_messages, OTHER) as client, calls_on_loop(long_messages) as calls:
        refs = client.get("/api/models/ada/talk/refs").json()
    assert len(refs["branches"]) == REFS + 1
    assert refs["tags"] == refs["converts"] == []
    assert "pullRequests" not in refs
    assert calls["removeprefix"] < REFS


def test_page_of_repos_ends_when_cards_are_too_long(hub: RunningHub) -> None:
    card = "---\nmore: " + "x" * 60_000 + "\n---\n"
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        for number in range(CARDS):
            create_repo(ada, f"m{number}")
            create_commit(ada, f"ada/m{number}", {"README.md": card.encode()})
        target, seen = "/api/models?limit=1000&full=true", list[str]()
        while target:
            answer = ada.get(target)
            assert len(answer.content) < 3 * MIB
            seen += [repo["id"] for repo in answer.json()]
            target = answer.links["next"]["url"] if "next" in answer.links else ""
    assert sorted(seen) == sorted(f"ada/m{number}" for number in range(CARDS))
