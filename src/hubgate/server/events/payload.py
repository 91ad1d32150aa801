"""The body of an event, version 3 of the payload: all of it but the part that names the webhook."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hubgate.server.events.kinds import Kind

LARGEST = 256 * 1024
# Of that, for the part that names the webhook, which comes last.
_WEBHOOK_PART = 128
# Of a change of more refs than fit, so many at most are told.
MOST_REFS_TOLD = 1_000
FOLDERS = {"model": "", "dataset": "datasets/", "space": "spaces/"}


class Snapshot(msgspec.Struct, frozen=True):
    """A repo as it is right after the change."""

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
        raise ValueError(f"{kind.name} takes {kind.extras}")
    whole = {"event": {"action": kind.action, "scope": kind.scope}, "repo": _repo(kind, repo, base_url), **extras}
    body = msgspec.json.encode(whole)
    return body if len(body) <= LARGEST - _WEBHOOK_PART else _shortened(whole)


def _shortened(whole: dict[str, Any]) -> bytes:
    """The first refs, as many as fit, and `truncated`: a change is never refused because it is too large to tell."""
    refs: Sequence[RefChange] = whole.get("updatedRefs", ())
    shortened = {**whole, "updatedRefs": [], "truncated": True}
    room = LARGEST - _WEBHOOK_PART - len(msgspec.json.encode(shortened))
    for ref in refs[:MOST_REFS_TOLD]:
        room -= len(msgspec.json.encode(ref)) + len(",")
        if room < 0:
            break
        shortened["updatedRefs"].append(ref)
    return msgspec.json.encode(shortened)


def _repo(kind: Kind, repo: Snapshot, base_url: str) -> dict[str, Any]:
    said: dict[str, Any] = {
        "type": repo.type,
        "name": repo.name,
        "id": repo.id,
        "private": repo.private,
        "url": {
            "web": f"{base_url}/{FOLDERS[repo.type]}{repo.name}",
            "api": f"{base_url}/api/{repo.type}s/{repo.name}",
        },
        "owner": {"id": repo.owner_id},
    }
    if kind.scope.startswith("repo") and repo.head_sha is not None:
        # Existing receivers look for either spelling.
        said |= {"headSha": repo.head_sha, "head_sha": repo.head_sha}
    if repo.tags:
        said["tags"] = list(repo.tags)
    if repo.type == "space":
        said["subdomain"] = repo.name.lower().replace("/", "-").replace("_", "-").replace(".", "-")
    return said
