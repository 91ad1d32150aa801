"""`make contract`: rewrite contract/events/ from the events of a running hub. Review the difference before you commit.

Ids, commits and the hub's URL differ from run to run, so they are replaced by numbered placeholders, in the order of
their appearance in each file.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from tests.bed.engines import SqliteEngine, create_sqlite_template, settings_for
from tests.bed.git import clone_repo
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo, send_commit
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.events import store
from hubgate.server.resources import Hub

FOLDER = Path(__file__).parents[2] / "contract/events"
ADDRESS = "https://hub.example"

_IDS = re.compile(r"\b(?:[0-9a-f]{40}|[0-9a-f]{24})\b")

Payload = dict[str, Any]


def recorded(hub: RunningHub, folder: Path) -> dict[str, Payload]:
    """The normalised payload of each kind of change, by the name of its file. `folder` is for a working copy."""
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    token = create_token(hub, ada)
    with api(hub, token) as client:
        found = dict(_story(client, hub, token, folder))
    return {name: _normalised(payload, hub.url) for name, payload in found.items()}


def _story(client: httpx.Client, hub: RunningHub, token: str, folder: Path) -> Iterator[tuple[str, Payload]]:
    def last(repo: str = "ada/tiny", repo_type: str = "model") -> Payload:
        events = client.get(f"/api/{repo_type}s/{repo}/events", params={"limit": 1000}).json()
        payload: Payload = events[-1]["payload"]
        return payload

    def send(method: str, tail: str, **body: Any) -> None:
        answer = client.request(method, f"/api/models/ada/tiny{tail}", json=body)
        assert answer.status_code == 200, answer.text

    made = create_repo(client, "tiny", license="mit")
    yield "repo.create", last()
    create_repo(client, "acme/rows", "dataset", private=True)
    yield "repo.create.private-dataset", last("acme/rows", "dataset")
    create_repo(client, "My_app.v2", "space")
    yield "repo.create.space", last("ada/My_app.v2", "space")

    create_commit(client, "ada/tiny", {"config.json": b"{}"})
    yield "repo.content.update.commit", last()
    answer = send_commit(client, "ada/tiny", {"notes.txt": b"better\n"}, query="?create_pr=1")
    assert answer.status_code == 200, answer.text
    yield "repo.content.update.pull-request", last()
    yield from _discussions(client)
    send("POST", "/branch/next")
    yield "repo.content.update.branch-created", last()
    send("POST", "/tag/main", tag="v1")
    yield "repo.content.update.tag-created", last()
    work = clone_repo(hub, "ada/tiny", folder / "work", token)
    work.git("checkout", "-q", "-b", "trial")
    work.commit("trial.txt")
    work.git("tag", "v2")
    # One ref is moved, one created, one deleted.
    work.git("push", "-q", "origin", "HEAD:main", "v2", ":next")
    yield "repo.content.update.push", last()
    send("POST", "/branch/old")
    send("DELETE", "/branch/old")
    yield "repo.content.update.branch-deleted", last()
    send("DELETE", "/tag/v1")
    yield "repo.content.update.tag-deleted", last()
    send("POST", "/super-squash/main", message="All of it")
    yield "repo.content.update.squash", last()

    send("PUT", "/settings", private=True)
    yield "repo.config.update.private", last()
    send("PUT", "/settings", gated="auto")
    yield "repo.config.update.gated", last()
    send("PUT", "/settings", discussionsDisabled=True)
    yield "repo.config.update.discussions", last()

    answer = client.post("/api/repos/move", json={"fromRepo": "ada/tiny", "toRepo": "acme/small", "type": "model"})
    assert answer.status_code == 200, answer.text
    yield "repo.move", last("acme/small")
    answer = client.request("DELETE", "/api/repos/delete", json={"name": "small", "organization": "acme"})
    assert answer.status_code == 200, answer.text
    yield "repo.delete", _last_stored(hub, made["id"])


def _discussions(client: httpx.Client) -> Iterator[tuple[str, Payload]]:
    """Pull request 1, which exists, and a discussion."""

    def send(method: str, tail: str, **body: Any) -> Any:
        answer = client.request(method, f"/api/models/ada/tiny/discussions{tail}", json=body)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def last(position: int = -1) -> Payload:
        events = client.get("/api/models/ada/tiny/events", params={"limit": 1000}).json()
        payload: Payload = events[position]["payload"]
        return payload

    yield "discussion.create.pull-request", last(-2)
    send("POST", "/1/merge")
    yield "repo.content.update.merge", last(-2)
    yield "discussion.update.merge", last()
    send("POST", "", title="A question", description="Which data was used?")
    yield "discussion.create", last()
    comment = send("POST", "/2/comment", comment="The second one.")["newMessage"]["id"]
    yield "discussion.comment.create", last()
    send("POST", f"/2/comment/{comment}/edit", content="The **first** one.")
    yield "discussion.comment.update.edit", last()
    send("POST", f"/2/comment/{comment}/hide")
    yield "discussion.comment.update.hide", last()
    send("POST", "/2/title", title="Which data was used?")
    yield "discussion.update.title", last()
    send("POST", "/2/pin", pinned=True)
    yield "discussion.update.pin", last()
    send("POST", "/2/status", status="closed")
    yield "discussion.update.status", last()
    send("DELETE", "/2")
    yield "discussion.delete", last()


def _last_stored(hub: RunningHub, repo_id: str) -> Payload:
    """The last event of a deleted repo: it can no longer be requested over HTTP, but webhooks still receive it."""

    async def work(opened: Hub) -> bytes:
        rows = await opened.db.read_long(lambda tx: store.of_repo(tx, repo_id, 0, 1000))
        return bytes(rows[-1]["body"])

    payload: Payload = json.loads(hub.call(work))
    return payload


def _normalised(payload: Payload, url: str) -> Payload:
    known: dict[str, str] = {}

    def stand_in(match: re.Match[str]) -> str:
        found = match[0]
        of_its_length = sum(len(other) == len(found) for other in known)
        return known.setdefault(found, f"{of_its_length + 1:0{len(found)}x}")

    text = _IDS.sub(stand_in, json.dumps(payload)).replace(url, ADDRESS)
    normalised: Payload = json.loads(text)
    return normalised


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = SqliteEngine(create_sqlite_template(folder), folder).fresh_url()
        with run_hub(settings_for(url, folder)) as hub:
            found = recorded(hub, folder)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file in FOLDER.glob("*.json"):
        file.unlink()
    for title, payload in found.items():
        (FOLDER / f"{title}.json").write_text(json.dumps(payload, indent=2) + "\n")
    print(f"wrote {len(found)} events")


if __name__ == "__main__":
    main()
