"""A repo as the API shows it. Members that only models, datasets or spaces have are left out elsewhere."""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from hubgate.server.clock import iso
from hubgate.server.hub.git.objects import Entry
from hubgate.server.hub.repos.model import Repo, RepoType

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


def siblings(files: Sequence[Entry], *, hide_hashes: bool) -> list[dict[str, Any]]:
    """With what `blobs` asks for."""
    return [_sibling(file, hide_hashes) for file in files]


def _sibling(file: Entry, hide_hash: bool) -> dict[str, Any]:
    said: dict[str, Any] = {"rfilename": file.path, "size": file.size, "blobId": file.sha}
    if file.pointer and not hide_hash:
        pointer = file.pointer
        said["lfs"] = {"size": pointer.size, "sha256": pointer.oid, "pointerSize": pointer.pointer_size}
    return said


def only(said: dict[str, Any], expand: Collection[str]) -> dict[str, Any]:
    """The members that were asked for; names that mean nothing here are ignored."""
    return {name: value for name, value in said.items() if name in _ALWAYS or name in expand}
