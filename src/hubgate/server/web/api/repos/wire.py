"""A repo as JSON, and the visibility that a request asks for. Fields that apply only to models, datasets or spaces are
omitted for other types.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any, Literal

import msgspec

from hubgate.server.clock import iso
from hubgate.server.errors import Unprocessable
from hubgate.server.hub.git.objects import TreeEntry
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.jobs.job import checkpoint

_ITEMS_PER_PART = 1_000
# Always present; `expand` names the others.
_ALWAYS = ("_id", "id")


def describe(repo: Repo, *, card: bool = True) -> dict[str, Any]:
    """Describe a repo. Card and tags are sent as stored: parsing a thousand of them would be too slow."""
    fields: dict[str, Any] = {
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
    if repo.repo_type is RepoType.MODEL:
        fields["modelId"] = repo.full_name
        model_fields = msgspec.structs.asdict(repo.card_summary)
        fields |= {field: value for field, value in model_fields.items() if isinstance(value, str)}
    if repo.repo_type is RepoType.SPACE:
        fields["sdk"] = repo.sdk
    if card:
        fields["cardData"] = msgspec.Raw(repo.card.encode())
    return fields


def siblings(files: Sequence[TreeEntry], *, hide_hashes: bool) -> msgspec.Raw:
    """Files with sizes and hashes, for `blobs`. There may be a million: do not call on the event loop."""
    return encode_array(_sibling(file, hide_hashes) for file in files)


def sibling_names(paths: Sequence[str]) -> msgspec.Raw:
    """Files with their names only."""
    return encode_array({"rfilename": path} for path in paths)


def encode_array(items: Iterable[object]) -> msgspec.Raw:
    """Encode a JSON array in parts: encoding blocks all other threads (GIL). Call in a worker thread."""
    parts, chunks = iter(items), list[bytes]()
    while part := list(islice(parts, _ITEMS_PER_PART)):
        checkpoint()
        chunks.append(msgspec.json.encode(part)[1:-1])
    return msgspec.Raw(b"[" + b",".join(chunks) + b"]")


def _sibling(file: TreeEntry, hide_hash: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"rfilename": file.path, "size": file.size, "blobId": file.sha}
    if file.pointer and not hide_hash:
        pointer = file.pointer
        fields["lfs"] = {"size": pointer.size, "sha256": pointer.oid, "pointerSize": pointer.pointer_size}
    return fields


def select_fields(fields: dict[str, Any], expand: Collection[str]) -> dict[str, Any]:
    """Return the requested fields; unknown names are ignored."""
    return {name: value for name, value in fields.items() if name in _ALWAYS or name in expand}


Visibility = Literal["public", "private", "protected"]


def requested_privacy(kind: RepoType, private: bool | None, visibility: Visibility | None) -> bool | None:
    """Return the requested privacy, from `visibility` or, in older clients, `private`; None if neither is sent. A
    protected space hides its files but not its running app. Here it is private: its app gets deliveries, and requests
    of users who may see it.
    """
    if visibility == "protected" and kind is not RepoType.SPACE:
        raise Unprocessable(f"Only a space can be protected, not a {kind.value}.")
    from_visibility = None if visibility is None else visibility != "public"
    if from_visibility is not None and private is not None and from_visibility != private:
        raise Unprocessable("private and visibility contradict each other.")
    return private if from_visibility is None else from_visibility
