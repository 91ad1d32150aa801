"""A repo as the API shows it. Members that only models, datasets or spaces have are left out elsewhere."""

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any

import msgspec

from hubgate.server.clock import iso
from hubgate.server.hub.git.objects import Entry
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.jobs.job import checkpoint

_AT_ONCE = 1_000
# What `expand` may name, beside what every answer has.
_ALWAYS = ("_id", "id")


def described(repo: Repo, *, card: bool = True) -> dict[str, Any]:
    """Card and tags go out as they are stored: a list of a thousand has no time to take them apart."""
    said: dict[str, Any] = {
        "_id": repo.id,
        "id": repo.full_name,
        "author": repo.owner_name,
        "sha": repo.head_sha,
        "lastModified": iso(repo.updated_at),
        "createdAt": iso(repo.created_at),
        "private": bool(repo.private),
        "gated": repo.gated or False,
        "disabled": False,
        "downloads": 0,
        "likes": 0,
        "tags": msgspec.Raw(repo.tags.encode()),
    }
    if repo.kind is RepoType.MODEL:
        said["modelId"] = repo.full_name
        told = msgspec.structs.asdict(repo.kind_of_model)
        said |= {field: value for field, value in told.items() if isinstance(value, str)}
    if repo.kind is RepoType.SPACE:
        said["sdk"] = repo.sdk
    if card:
        said["cardData"] = msgspec.Raw(repo.card.encode())
    return said


def siblings(files: Sequence[Entry], *, hide_hashes: bool) -> msgspec.Raw:
    """With what `blobs` asks for. There may be a million: not on the event loop."""
    return encoded(_sibling(file, hide_hashes) for file in files)


def names(paths: Sequence[str]) -> msgspec.Raw:
    """The same without."""
    return encoded({"rfilename": path} for path in paths)


def encoded(items: Iterable[object]) -> msgspec.Raw:
    """A JSON array for a job: encoded in parts, since other threads have to wait for each."""
    parts, said = iter(items), list[bytes]()
    while part := list(islice(parts, _AT_ONCE)):
        checkpoint()
        said.append(msgspec.json.encode(part)[1:-1])
    return msgspec.Raw(b"[" + b",".join(said) + b"]")


def _sibling(file: Entry, hide_hash: bool) -> dict[str, Any]:
    said: dict[str, Any] = {"rfilename": file.path, "size": file.size, "blobId": file.sha}
    if file.pointer and not hide_hash:
        pointer = file.pointer
        said["lfs"] = {"size": pointer.size, "sha256": pointer.oid, "pointerSize": pointer.pointer_size}
    return said


def only(said: dict[str, Any], expand: Collection[str]) -> dict[str, Any]:
    """The members that were asked for; names that mean nothing here are ignored."""
    return {name: value for name, value in said.items() if name in _ALWAYS or name in expand}
