"""Writes a commit: first the blobs, then the trees and the commit on top of the current head. Then the branch moves, if
its head is unchanged. If the head has changed, the commit is retried, unless the request names a parent (412).
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from pygit2.enums import FileMode

from hubgate.server import failpoint
from hubgate.server.access.caller import Caller
from hubgate.server.accounts.model import User
from hubgate.server.errors import NotFound, PreconditionFailed, Unavailable, Unprocessable
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.commits.attribute_files import (
    attributes_after,
    attributes_too_large,
    paths_read_next,
    read_content,
    removed_paths,
    with_lines,
)
from hubgate.server.hub.commits.attributes import ATTRIBUTES_FILE, folders_of
from hubgate.server.hub.commits.model import (
    LARGE_FILE_BYTES,
    AddFile,
    AddLargeFile,
    CommitRequest,
    CommitResult,
    Content,
    Delete,
    Operation,
)
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import objects, trees
from hubgate.server.hub.git.paths import (
    GITMODULES_FILE,
    MAX_GITMODULES_BYTES,
    check_gitmodules,
    check_path,
    may_be_pushed,
    path_error,
)
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.git.writes import (
    Author,
    DraftChange,
    NewCommit,
    Put,
    PutContent,
    Remove,
    write_blobs,
    write_commit,
    write_file_as_blob,
)
from hubgate.server.hub.guests.charges import Charge, charge_git_storage, charge_of, hidden_files, use_files
from hubgate.server.hub.guests.marked_commits import mark
from hubgate.server.hub.lfs import contents, stored_file
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.card import README
from hubgate.server.hub.repos.lookup import Revision, revision_not_found
from hubgate.server.hub.repos.model import Repo, is_pull_request, pull_request_of
from hubgate.server.hub.repos.refs import RefConflict, move_refs

# The exact text that existing clients look for.
STALE_PARENT = "The branch was updated since you opened this page. Please refresh and try again."
MAX_ATTEMPTS = 200
# Bytes charged to guests per object, in addition to its content.
OBJECT_OVERHEAD = 256
# Up to this number, small files are written together with the commit, which saves a task for each; others before it,
# in tasks of so many, since the branch is locked while a commit is written.
BLOBS_AT_ONCE = 64


class PreparedCommit(Struct, frozen=True):
    """The changes to trees, and the large files that .gitattributes does not match yet."""

    changes: Sequence[DraftChange]
    undeclared: Sequence[str]


async def commit(repos: Repos, repo: Repo, caller: Caller, ref: str, request: CommitRequest) -> CommitResult:
    """Commit to the branch or pull request `ref`, which must exist."""
    head = await head_of(repos, repo, ref)
    check_parent(request, head)
    charge = charge_of(repo, caller.identity, num) if (num := pull_request_of(ref)) else None
    prepared = await prepare_commit(repos, repo, head, request, charge)
    async with repos.branch_locks.on(repo.id, ref):
        return await _commit_on_head(repos, repo, caller.user, ref, request, prepared, charge)


async def _commit_on_head(
    repos: Repos,
    repo: Repo,
    user: User,
    ref: str,
    request: CommitRequest,
    prepared: PreparedCommit,
    charge: Charge | None,
) -> CommitResult:
    for _ in range(MAX_ATTEMPTS):
        head = await head_of(repos, repo, ref)
        check_parent(request, head)
        new = await write_prepared(repos, repo, user, head, request, prepared)
        if is_pull_request(ref):
            await mark(repos, repo, [new])
        try:
            change = RefChange(ref, head, new)
            await move_refs(repos, repo, [change], atomic=True, added=1, charge=charge, user_id=user.id)
        except RefConflict:
            continue
        return CommitResult(new)
    raise Unavailable("The branch changes faster than this commit can be applied. Try again.")


async def write_prepared(
    repos: Repos, repo: Repo, user: User, parent: str | None, request: CommitRequest, prepared: PreparedCommit
) -> str:
    """Write the commit object. No ref points to it yet."""
    changes = await _with_attributes(repos.folders.of(repo.id), parent, request.operations, prepared)
    author = Author.of_user(user.name, repos.base_url)
    read_next = [README, *paths_read_next(request.operations)]
    draft = NewCommit(parent, changes, request.message, author, repos.clock(), read_next)
    new = await write_commit(repos.folders.of(repo.id), draft)
    failpoint.hit("commit-objects-landed")
    return new


async def prepare_commit(
    repos: Repos, repo: Repo, parent: str, request: CommitRequest, charge: Charge | None
) -> PreparedCommit:
    """Check a commit, and write its files unless they are small and few. Before the first write everything is checked
    and a guest is charged for the whole commit: blobs stay on disk even if the commit fails (attack O72).
    """
    folder, operations = repos.folders.of(repo.id), request.operations
    await _check_paths(folder, parent, operations)
    attributes = await attributes_after(folder, parent, operations)
    added_paths = [operation.path for operation in operations if not isinstance(operation, Delete)]
    seconds = repos.limits.matching_seconds
    if attributes.are_quick_for(added_paths):
        large = attributes.large_among(added_paths, seconds)
    else:
        large = await in_thread(attributes.large_among, added_paths, seconds)
    pointers = await _pointers(repos, repo, operations, charge)
    stored_as_large = {item.path for item in operations if _is_stored_as_large(item, pointers, large)}
    if ATTRIBUTES_FILE in stored_as_large:
        raise attributes_too_large()
    await _check_gitmodules(operations, stored_as_large)
    undeclared = [path for path in added_paths if path in stored_as_large and path not in large]
    if missing := await use_files(repos, repo, charge, {oid for oid, _ in pointers.values()}):
        raise _not_uploaded(min(missing))
    if charge is not None:
        rules = await with_lines(folder, parent, operations, undeclared)
        size = await _size_in_git(folder, parent, request) + len(rules or b"")
        await charge_git_storage(repos, repo, charge, size)
    # Old paths are removed before anything is added: two files may swap their names.
    removals, changes = list[DraftChange](), list[DraftChange]()
    modes = await _modes_of_renamed(folder, parent, operations)
    for operation in operations:
        if isinstance(operation, Delete):
            changes.append(Remove(operation.path, operation.file, operation.folder))
            continue
        if operation.old_path is not None and operation.old_path != operation.path:
            removals.append(Remove(operation.old_path))
        content = await _content_for(repos, repo, operation, pointers, stored_as_large, charge)
        mode = modes.get(operation.old_path, FileMode.BLOB)
        if content.file is not None:
            changes.append(Put(operation.path, await write_file_as_blob(folder, content.file), mode))
        else:
            changes.append(PutContent(operation.path, content.data, mode))
    return PreparedCommit([*removals, *await _written_unless_few(folder, changes)], undeclared)


async def _written_unless_few(folder: Path, changes: Sequence[DraftChange]) -> Sequence[DraftChange]:
    """Write the small files of a commit, unless they can be written together with it."""
    small = [change for change in changes if isinstance(change, PutContent)]
    if len(small) <= BLOBS_AT_ONCE:
        return changes
    shas = [
        sha
        for start in range(0, len(small), BLOBS_AT_ONCE)
        for sha in await write_blobs(folder, [change.content for change in small[start : start + BLOBS_AT_ONCE]])
    ]
    ids = iter(shas)
    return [
        Put(change.path, next(ids), change.mode) if isinstance(change, PutContent) else change for change in changes
    ]


async def _modes_of_renamed(folder: Path, parent: str, operations: Sequence[Operation]) -> dict[str | None, int]:
    """The modes of renamed executables by their old paths: a rename does not change them."""
    paths = [item.old_path for item in operations if not isinstance(item, Delete) and item.old_path]
    found = await trees.entries_at(folder, parent, paths) if paths else []
    return {entry.path: entry.mode for entry in found if entry.mode == FileMode.BLOB_EXECUTABLE}


async def _size_in_git(folder: Path, parent: str, request: CommitRequest) -> int:
    """The approximate bytes that the commit adds: contents, message, and every rewritten folder. Any change in a folder
    of 100,000 files rewrites megabytes.
    """
    operations = request.operations
    contents = sum(item.content.size for item in operations if isinstance(item, AddFile))
    entries = sum(OBJECT_OVERHEAD + len(item.path) for item in operations)
    # A folder with both removals and additions is written twice.
    shrunk = {directory for path in removed_paths(operations) for directory in folders_of(path)}
    grown = {"", *(directory for item in operations for directory in folders_of(item.path))}
    rewritten = await trees.size_of_folders(folder, parent, [*shrunk, *grown]) + OBJECT_OVERHEAD * len(shrunk | grown)
    return contents + entries + rewritten + OBJECT_OVERHEAD + len(request.message)


async def _check_paths(folder: Path, commit: str | None, operations: Sequence[Operation]) -> None:
    """Check the paths of a commit. A removed path may have any name that git accepted in a push."""
    for operation in operations:
        if not isinstance(operation, Delete):
            check_path(operation.path)
    refused = [(path, refusal) for path in removed_paths(operations) if (refusal := path_error(path))]
    if not refused:
        return
    existing = (
        await trees.existing_paths(folder, commit, [path for path, _ in refused if may_be_pushed(path)])
        if commit
        else ()
    )
    for path, refusal in refused:
        if path not in existing:
            raise refusal


async def _pointers(
    repos: Repos, repo: Repo, operations: Sequence[Operation], charge: Charge | None
) -> dict[str, tuple[str, int]]:
    """The large files that the operations reference, directly or by an LFS pointer as content: id and size by path.
    They must have been uploaded to the repo: knowing a hash must not grant access to a file.
    """
    named: dict[str, tuple[str, int | None]] = {}
    for item in operations:
        if isinstance(item, AddLargeFile):
            named[item.path] = item.oid, item.size
        elif isinstance(item, AddFile) and item.content.size <= objects.MAX_POINTER_BYTES:
            pointer = objects.read_pointer(await read_content(item.content, item.content.size))
            if pointer is not None:
                named[item.path] = pointer.oid, pointer.size
    if hidden := await hidden_files(repos, repo, charge, {oid for oid, _ in named.values()}):
        raise _not_uploaded(min(hidden))
    return {path: (oid, await _check_uploaded(repos, repo, oid, size)) for path, (oid, size) in named.items()}


def _is_stored_as_large(item: Operation, pointers: Collection[str], large: Collection[str]) -> bool:
    """Whether the operation adds a file that is stored as a large file."""
    if item.path in pointers or not isinstance(item, AddFile):
        return item.path in pointers
    return is_large(item.content.size, by_name=item.as_large or item.path in large)


async def _check_gitmodules(operations: Sequence[Operation], stored_as_large: Collection[str]) -> None:
    for item in operations:
        if isinstance(item, AddFile) and item.path.lower() == GITMODULES_FILE and item.path not in stored_as_large:
            check_gitmodules(await read_content(item.content, MAX_GITMODULES_BYTES + 1))


async def _content_for(
    repos: Repos,
    repo: Repo,
    operation: AddFile | AddLargeFile,
    pointers: Mapping[str, tuple[str, int]],
    stored_as_large: Collection[str],
    charge: Charge | None,
) -> Content:
    """What git stores of an added file: its content or an LFS pointer."""
    path = operation.path
    if isinstance(operation, AddLargeFile) or (charge is not None and path in pointers):
        # Pointers of guests are in the canonical form, the only form that `hub/guests/sweep.py` knows.
        return _in_memory(objects.pointer_text(*pointers[path]))
    if path in pointers or path not in stored_as_large:
        return operation.content
    oid = await stored_file.store_content(repos, repo, operation.content, charge)
    return _in_memory(objects.pointer_text(oid, operation.content.size))


def _in_memory(data: bytes) -> Content:
    return Content(len(data), data)


def is_large(size: int, *, by_name: bool) -> bool:
    """Whether a file is stored as a large file, by its name or size, independent of the upload method."""
    return size > LARGE_FILE_BYTES or (size > 0 and by_name)


async def _with_attributes(
    folder: Path, parent: str | None, operations: Sequence[Operation], prepared: PreparedCommit
) -> Sequence[DraftChange]:
    """The changes with lines for new large files in .gitattributes, without which a clone would contain pointers. The
    lines are added to the file at `parent`, since concurrent commits may have added others.
    """
    text = await with_lines(folder, parent, operations, prepared.undeclared)
    if text is None:
        return prepared.changes
    put = PutContent(ATTRIBUTES_FILE, text)
    changes = [
        put if isinstance(change, Put | PutContent) and change.path == ATTRIBUTES_FILE else change
        for change in prepared.changes
    ]
    return changes if put in changes else [*changes, put]


async def _check_uploaded(repos: Repos, repo: Repo, oid: str, declared_size: int | None) -> int:
    content = await contents.find(repos, repo.id, oid)
    if content is None:
        raise _not_uploaded(oid)
    if declared_size is not None and declared_size != content.size:
        raise Unprocessable(f"The large file {oid} has {content.size} bytes, not {declared_size}.")
    return content.size


def _not_uploaded(oid: str) -> Unprocessable:
    return Unprocessable(f"The large file {oid} was not uploaded to this repo.")


async def head_of(repos: Repos, repo: Repo, ref: str) -> str:
    sha = await store.ref(repos.db, repo.id, ref)
    if sha is None:
        raise revision_not_found(ref)
    return sha


def check_parent(request: CommitRequest, head: str) -> None:
    if request.parent is not None and not head.startswith(request.parent.lower()):
        raise PreconditionFailed(STALE_PARENT)


def writable_ref(revision: Revision) -> str:
    """The branch or pull request that a commit to this revision moves."""
    if revision.ref is None or revision.ref.startswith("refs/tags/"):
        raise NotFound("Commit to a branch or a pull request, not to a tag or a commit.", code="RevisionNotFound")
    return revision.ref
