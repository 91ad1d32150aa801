"""Repos, their files and commits, without file contents."""

import json
from collections.abc import Sequence
from typing import Any

from hubgate.client.addresses import api_path, checked_name, checked_repo, checked_type, file_path, segment
from hubgate.client.answers import json_of, refusal
from hubgate.client.errors import UnexpectedAnswer
from hubgate.client.models import Commit, Entry, Repo, RepoMade
from hubgate.client.session import Call, Session, json_call
from hubgate.client.shaping import shaped, shaped_list
from hubgate.client.wire import Flow

NDJSON = {"Content-Type": "application/x-ndjson"}
# The hub builds the whole commit before it responds.
COMMIT_SECONDS = 600.0


def create(
    session: Session,
    name: str,
    repo_type: str | None,
    *,
    private: bool,
    sdk: str | None,
    exist_ok: bool,
) -> Flow[RepoMade]:
    """Create a repo. A `name` without a namespace is created in the user's own."""
    namespace, own = _split(name)
    kind = checked_type(repo_type)
    body: dict[str, Any] = {"name": own, "organization": namespace, "type": kind}
    body["visibility"] = "private" if private else "public"
    if sdk is not None:
        body["sdk"] = sdk
    answer = yield from session.answered(json_call("POST", "/api/repos/create", body))
    if answer.status == 409 and exist_ok:
        value = json_of(answer)
        if isinstance(value, dict) and isinstance(value.get("url"), str):
            return RepoMade(value["url"], name)
    if not 200 <= answer.status < 300:
        raise refusal(answer, session.clock())
    return shaped(RepoMade, json_of(answer))


def _split(name: str) -> tuple[str | None, str]:
    """Split a repo name. An empty namespace is rejected, because it is probably an unset variable."""
    if "/" not in checked_name(name):
        return None, name
    namespace, _, own = checked_repo(name).partition("/")
    return namespace, own


def delete(session: Session, name: str, repo_type: str | None) -> Flow[None]:
    namespace, own = _split(name)
    body = {"name": own, "organization": namespace, "type": checked_type(repo_type)}
    yield from session.call(json_call("DELETE", "/api/repos/delete", body))


def move(session: Session, old: str, new: str, repo_type: str | None, leave_redirect: bool | None) -> Flow[None]:
    body: dict[str, Any] = {"fromRepo": checked_repo(old), "toRepo": checked_repo(new), "type": checked_type(repo_type)}
    if leave_redirect is not None:
        body["leaveRedirect"] = leave_redirect
    yield from session.call(json_call("POST", "/api/repos/move", body))


def info(session: Session, repo: str, repo_type: str | None, revision: str | None) -> Flow[Repo]:
    tail = "" if revision is None else f"/revision/{segment(revision)}"
    return _repo((yield from session.json(Call("GET", api_path(repo, repo_type) + tail))), repo_type)


def every(
    session: Session, repo_type: str | None, *, owner: str | None, search: str | None, limit: int | None
) -> Flow[list[Repo]]:
    query = {"author": owner, "search": search, "limit": None if limit is None else min(max(limit, 1), 1000)}
    call = Call("GET", f"/api/{checked_type(repo_type)}s", query=query)
    return [_repo(item, repo_type) for item in (yield from session.pages(call, limit))]


def files(
    session: Session, repo: str, repo_type: str | None, revision: str, path: str, *, recursive: bool
) -> Flow[list[Entry]]:
    tail = f"/tree/{segment(revision)}" + (f"/{file_path(path)}" if path else "")
    call = Call("GET", api_path(repo, repo_type) + tail, query={"recursive": "true" if recursive else None})
    return shaped_list(Entry, (yield from session.pages(call, None)))


def delete_files(
    session: Session, repo: str, paths: Sequence[str], repo_type: str | None, revision: str, message: str | None
) -> Flow[Commit]:
    if isinstance(paths, str) or not paths:
        # A string would be treated as a list of one-letter files.
        raise ValueError("Name the files to delete as a list.")
    summary = message or f"Delete {paths[0] if len(paths) == 1 else f'{len(paths)} files'}"
    lines: list[object] = [{"key": "header", "value": {"summary": summary}}]
    lines += [{"key": "deletedEntry", "value": {"path": checked_name(path)}} for path in paths]
    call = Call(
        "POST",
        f"{api_path(repo, repo_type)}/commit/{segment(revision)}",
        headers=NDJSON,
        body="\n".join(map(json.dumps, lines)).encode(),
        patience=COMMIT_SECONDS,
    )
    return shaped(Commit, (yield from session.json(call)))


def _repo(value: object, repo_type: str | None) -> Repo:
    if not isinstance(value, dict):
        raise UnexpectedAnswer("The hub answered with something else than a repo.")
    return shaped(Repo, {**value, "type": checked_type(repo_type)})
