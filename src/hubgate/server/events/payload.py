"""The body of an event, payload version 3, without the `webhook` member, which is added on delivery."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hubgate.server.events.kinds import Kind

LARGEST_BODY = 256 * 1024
# Bytes of LARGEST_BODY reserved for the `webhook` member, which is added last.
_WEBHOOK_BYTES = 128
# The most refs in a truncated payload.
MAX_REFS_LISTED = 1_000
# The most bytes of a comment in a truncated payload, in UTF-8. Each may take 6 in JSON.
MAX_COMMENT_BYTES = 32 * 1024
# The prefix of `namespace/name` in URLs, by type of repo.
URL_PREFIXES = {"model": "", "dataset": "datasets/", "space": "spaces/"}


class Snapshot(msgspec.Struct, frozen=True):
    """A repo right after the change; for a move, right before it."""

    id: str
    type: str
    # With its namespace.
    name: str
    owner_id: str
    private: bool
    head_sha: str | None
    tags: Sequence[str]


class RefChange(msgspec.Struct, frozen=True, rename="camel"):
    ref: str
    old_sha: str | None
    new_sha: str | None


def body_of(kind: Kind, repo: Snapshot, extras: Mapping[str, Any], base_url: str) -> bytes:
    if set(extras) != set(kind.extras):
        raise ValueError(f"{kind.name} takes the extras {list(kind.extras)}, not {list(extras)}")
    payload = {"event": {"action": kind.action, "scope": kind.scope}, "repo": _repo(kind, repo, base_url), **extras}
    body = msgspec.json.encode(payload)
    return body if len(body) <= LARGEST_BODY - _WEBHOOK_BYTES else _shortened(payload)


def _shortened(payload: dict[str, Any]) -> bytes:
    """The payload with as many refs, or as much of the comment, as fits, and `truncated`: a change is never rejected
    because of its payload size.
    """
    if "comment" in payload:
        text = payload["comment"]["content"].encode()[:MAX_COMMENT_BYTES].decode(errors="ignore")
        return msgspec.json.encode({**payload, "comment": {**payload["comment"], "content": text}, "truncated": True})
    refs: Sequence[RefChange] = payload.get("updatedRefs", ())
    shortened = {**payload, "updatedRefs": [], "truncated": True}
    room = LARGEST_BODY - _WEBHOOK_BYTES - len(msgspec.json.encode(shortened))
    for ref in refs[:MAX_REFS_LISTED]:
        room -= len(msgspec.json.encode(ref)) + len(",")
        if room < 0:
            break
        shortened["updatedRefs"].append(ref)
    return msgspec.json.encode(shortened)


def _repo(kind: Kind, repo: Snapshot, base_url: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "type": repo.type,
        "name": repo.name,
        "id": repo.id,
        "private": repo.private,
        "url": {
            "web": f"{base_url}/{URL_PREFIXES[repo.type]}{repo.name}",
            "api": f"{base_url}/api/{repo.type}s/{repo.name}",
        },
        "owner": {"id": repo.owner_id},
    }
    if kind.scope.startswith("repo") and repo.head_sha is not None:
        # Existing receivers look for either spelling.
        fields |= {"headSha": repo.head_sha, "head_sha": repo.head_sha}
    if repo.tags:
        fields["tags"] = list(repo.tags)
    if repo.type == "space":
        fields["subdomain"] = repo.name.lower().replace("/", "-").replace("_", "-").replace(".", "-")
    return fields


class _Owner(msgspec.Struct):
    id: str


class _NamedRepo(msgspec.Struct):
    name: str
    owner: _Owner


class EventNames(msgspec.Struct, rename="camel"):
    """The names in the body of a stored event."""

    repo: _NamedRepo
    # The name and owner after a move. They may have changed again since then.
    moved_to: _NamedRepo | None = None
