"""How a client uploads each file of a planned commit: inside the commit, or beforehand as a large file, or not at all
because it is ignored.
"""

import base64
import codecs
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.hub.commits.attribute_files import attributes_of, start_of_text
from hubgate.server.hub.commits.attributes import Attributes, folders_of, ignore_rules
from hubgate.server.hub.commits.commit import is_large
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import trees
from hubgate.server.hub.git.objects import EntryType, TreeEntry
from hubgate.server.hub.git.paths import check_path
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.lfs import store as lfs_store
from hubgate.server.hub.repos.model import Repo


class Candidate(msgspec.Struct):
    path: str
    size: Annotated[int, msgspec.Meta(ge=0, le=1 << 50)] = 0
    # The first bytes, in base64.
    sample: str = ""

    @property
    def looks_binary(self) -> bool:
        """Whether the first bytes are not text: git would not show changes of such a file either."""
        try:
            start = base64.b64decode(self.sample, validate=True)
        except ValueError:
            return False
        return looks_binary(start, self.size)


def looks_binary(start: bytes, size: int) -> bool:
    """Whether the first bytes of a file of this size are not text."""
    try:
        # They may end within a character.
        codecs.getincrementaldecoder("utf-8")().decode(start, final=len(start) >= size)
    except UnicodeDecodeError:
        return True
    return b"\0" in start


class Answer(msgspec.Struct, rename="camel"):
    path: str
    upload_mode: Literal["regular", "lfs"]
    should_ignore: bool
    oid: str | UnsetType = UNSET


class UploadPlan(msgspec.Struct, frozen=True):
    """The answer for a file, and the size of the large file that it replaces; 0 if there is none."""

    answer: Answer
    replaced_size: int


async def upload_modes(
    repos: Repos,
    repo: Repo,
    commit: str,
    files: Sequence[Candidate],
    *,
    ignore: str | None,
    attributes: str | None,
    may_read: bool,
) -> list[UploadPlan]:
    """The upload mode of each file. `may_read`: the caller may read the files of the repo, so hashes of large files are
    included and the .gitignore at the commit applies. To others, its effect would reveal its lines, and in a pull
    request any file of the repo can have that name.
    """
    folder = repos.folders.of(repo.id)
    paths = [check_path(file.path) for file in files]
    known = {entry.path: entry for entry in await trees.entries_at(folder, commit, paths)}
    if attributes is not None:
        rules = Attributes([("", attributes)])
    else:
        rules = await attributes_of(folder, commit, {directory for path in paths for directory in folders_of(path)})
    if ignore is None and may_read:
        ignore = await start_of_text(folder, commit, ".gitignore")
    ignored_by = ignore_rules(ignore or "")
    # Off the event loop: the rules may be sent by the client.
    seconds = repos.limits.matching_seconds
    named_large = await in_thread(rules.large_among, paths, seconds)
    ignored_paths = await in_thread(ignored_by.ignored_among, paths, seconds)
    results = []
    for file in files:
        by_name = file.path in named_large
        large = is_large(file.size, by_name=by_name or file.looks_binary) or file.size > repos.regular_upload_max
        entry = known.get(file.path)
        is_secret = entry is not None and entry.pointer is not None and not may_read
        oid = None if is_secret else await _known_id(repos, repo, entry, large=large)
        mode: Literal["regular", "lfs"] = "lfs" if large else "regular"
        answer = Answer(file.path, mode, file.path in ignored_paths, oid or UNSET)
        replaced = entry.pointer.size if entry is not None and entry.pointer is not None else 0
        results.append(UploadPlan(answer, replaced))
    return results


def added_size(files: Sequence[Candidate], plans: Sequence[UploadPlan]) -> int:
    """The bytes that large files add at most. A file of the same size at the same path is probably the same: clients
    announce whole folders, of which they then send only what has changed.
    """
    return sum(
        file.size
        for file, plan in zip(files, plans, strict=True)
        if plan.answer.upload_mode == "lfs" and not plan.answer.should_ignore and plan.replaced_size != file.size
    )


async def _known_id(repos: Repos, repo: Repo, entry: TreeEntry | None, *, large: bool) -> str | None:
    """The id of the existing file, which a client compares with that of its own file: the SHA-256 of a large file,
    otherwise the id as a git blob.
    """
    if entry is None or entry.type is not EntryType.FILE:
        return None
    if large:
        return entry.pointer.oid if entry.pointer else None
    if entry.pointer:
        return await lfs_store.blob_sha_of(repos.db, repo.id, entry.pointer.oid)
    return entry.sha
