"""Repos, their files and commits, without file contents."""

import json
from collections.abc import Sequence
from typing import Any

from hubgate.client.addresses import api_path, checked_name, checked_repo, checked_type, file_path, path_segment
from hubgate.client.codec import decode, decode_list
from hubgate.client.errors import UnexpectedResponse
from hubgate.client.models import Commit, CreatedRepo, Entry, Repo
from hubgate.client.responses import json_of, refusal
from hubgate.client.session import Call, Session, json_call
from hubgate.client.wire import Flow

NDJSON = {"Content-Type": "application/x-ndjson"}
# The hub builds the whole commit before it responds.
COMMIT_SECONDS = 600.0


def create_repo(
    session: Session,
    name: str,
    *,
    type: str | None = None,  # noqa: A002
    private: bool = False,
    sdk: str | None = None,
    exist_ok: bool = False,
) -> Flow[CreatedRepo]:
    """Create a repo, in the user's own namespace if `name` has none."""
    namespace, repo_name = _split(name)
    body: dict[str, Any] = {"name": repo_name, "organization": namespace, "type": checked_type(type)}
    body["visibility"] = "private" if private else "public"
    if sdk is not None:
        body["sdk"] = sdk
    response = yield from session.response(json_call("POST", "/api/repos/create", body))
    if response.status == 409 and exist_ok:
        value = json_of(response)
        if isinstance(value, dict) and isinstance(value.get("url"), str):
            return CreatedRepo(value["url"], name)
    if not 200 <= response.status < 300:
        raise refusal(response, session.clock())
    return decode(CreatedRepo, json_of(response))


def _split(name: str) -> tuple[str | None, str]:
    """Split a repo name. An empty namespace is rejected, because it is probably an unset variable."""
    if "/" not in checked_name(name):
        return None, name
    namespace, _, repo_name = checked_repo(name).partition("/")
    return namespace, repo_name


def delete_repo(session: Session, name: str, *, type: str | None = None) -> Flow[None]:  # noqa: A002
    namespace, repo_name = _split(name)
    body = {"name": repo_name, "organization": namespace, "type": checked_type(type)}
    yield from session.call(json_call("DELETE", "/api/repos/delete", body))


def move_repo(
    session: Session,
    old: str,
    new: str,
    *,
    type: str | None = None,  # noqa: A002
    leave_redirect: bool | None = None,
) -> Flow[None]:
    """Rename a repo or move it to another owner.

    `leave_redirect` sets whether the old name redirects to the repo after a move to another owner. Only admins of the
    old owner may set it.
    """
    body: dict[str, Any] = {"fromRepo": checked_repo(old), "toRepo": checked_repo(new), "type": checked_type(type)}
    if leave_redirect is not None:
        body["leaveRedirect"] = leave_redirect
    yield from session.call(json_call("POST", "/api/repos/move", body))


def repo_info(
    session: Session,
    repo: str,
    *,
    type: str | None = None,  # noqa: A002
    revision: str | None = None,
) -> Flow[Repo]:
    tail = "" if revision is None else f"/revision/{path_segment(revision)}"
    return _repo((yield from session.json(Call("GET", api_path(repo, type) + tail))), type)


def list_repos(
    session: Session,
    *,
    type: str | None = None,  # noqa: A002
    owner: str | None = None,
    search: str | None = None,
    limit: int | None = None,
) -> Flow[list[Repo]]:
    query = {"author": owner, "search": search, "limit": None if limit is None else min(max(limit, 1), 1000)}
    call = Call("GET", f"/api/{checked_type(type)}s", query=query)
    return [_repo(item, type) for item in (yield from session.pages(call, limit))]


def list_files(
    session: Session,
    repo: str,
    *,
    path: str = "",
    type: str | None = None,  # noqa: A002
    revision: str = "main",
    recursive: bool = True,
) -> Flow[list[Entry]]:
    tail = f"/tree/{path_segment(revision)}" + (f"/{file_path(path)}" if path else "")
    call = Call("GET", api_path(repo, type) + tail, query={"recursive": "true" if recursive else None})
    return decode_list(Entry, (yield from session.pages(call, None)))


def delete_files(
    session: Session,
    repo: str,
    paths: Sequence[str],
    *,
    type: str | None = None,  # noqa: A002
    revision: str = "main",
    message: str | None = None,
) -> Flow[Commit]:
    if isinstance(paths, str) or not paths:
        # A string would be treated as a list of one-letter files.
        raise ValueError("Name the files to delete as a list.")
    summary = message or f"Delete {paths[0] if len(paths) == 1 else f'{len(paths)} files'}"
    lines: list[object] = [{"key": "header", "value": {"summary": summary}}]
    lines += [{"key": "deletedEntry", "value": {"path": checked_name(path)}} for path in paths]
    call = Call(
        "POST",
        f"{api_path(repo, type)}/commit/{path_segment(revision)}",
        headers=NDJSON,
        body="\n".join(map(json.dumps, lines)).encode(),
        read_timeout=COMMIT_SECONDS,
    )
    return decode(Commit, (yield from session.json(call)))


def _repo(value: object, repo_type: str | None) -> Repo:
    if not isinstance(value, dict):
        raise UnexpectedResponse("The hub's response is not a repo.")
    return decode(Repo, {**value, "type": checked_type(repo_type)})
