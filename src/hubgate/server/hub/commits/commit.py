"""Writes a commit: first the blobs, then the trees and the commit on top of the current head. Then the branch moves, if
its head is unchanged. If the head has changed, the commit is retried, unless the request names a parent (412).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from pygit2.enums import FileMode

from hubgate.server import failpoint
from hubgate.server.access.caller import Caller
from hubgate.server.accounts.model import User
from hubgate.server.errors import NotFound, PreconditionFailed, Unavailable, Unprocessable
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.commits.attributes import (
    ATTRIBUTES_FILE,
    MAX_EVALUATED_BYTES,
    Attributes,
    folders_of,
    with_lines_for,
)
from hubgate.server.hub.commits.model import (
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
    Change,
    NewCommit,
    Put,
    Remove,
    write_blob,
    write_commit,
    write_file_as_blob,
)
from hubgate.server.hub.guests.charges import Charge, charge_git_storage, charge_of, hidden_files, use_files
from hubgate.server.hub.guests.marked_commits import mark
from hubgate.server.hub.lfs import contents, stored_file
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.lookup import Revision, revision_not_found
from hubgate.server.hub.repos.model import Repo, is_pull_request, pull_request_of
from hubgate.server.hub.repos.refs import RefConflict, move_refs

# The exact text that existing clients look for.
STALE_PARENT = "The branch was updated since you opened this page. Please refresh and try again."
MAX_ATTEMPTS = 200
# Larger files are stored as large files even if .gitattributes does not match them. Also the maximum size of
# .gitattributes itself, to which lines are added in memory; a few hundred thousand lines are enough.
LARGE_FILE_BYTES = 10 * 1024 * 1024
# Bytes charged to guests per object, in addition to its content.
OBJECT_OVERHEAD = 256
# The error handler with which bytes that are not UTF-8 are written as they were read.
LOSSLESS = "surrogateescape"


class PreparedCommit(Struct, frozen=True):
    """The changes to trees, and the large files that .gitattributes does not match yet."""

    changes: Sequence[Change]
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
    draft = NewCommit(parent, changes, request.message, author, repos.clock())
    new = await write_commit(repos.folders.of(repo.id), draft)
    failpoint.hit("commit-objects-landed")
    return new


async def prepare_commit(
    repos: Repos, repo: Repo, parent: str, request: CommitRequest, charge: Charge | None
) -> PreparedCommit:
    """Write the blobs of all files. Before the first write everything is checked and a guest is charged for the whole
    commit: blobs stay on disk even if the commit fails (attack O72).
    """
    folder, operations = repos.folders.of(repo.id), request.operations
    await _check_paths(folder, parent, operations)
    attributes = await attributes_after(folder, parent, operations)
    added_paths = [operation.path for operation in operations if not isinstance(operation, Delete)]
    large = await in_thread(attributes.large_among, added_paths, repos.limits.matching_seconds)
    pointers = await _pointers(repos, repo, operations, charge)
    stored_as_large = {item.path for item in operations if _is_stored_as_large(item, pointers, large)}
    if ATTRIBUTES_FILE in stored_as_large:
        raise attributes_too_large()
    await _check_gitmodules(operations, stored_as_large)
    undeclared = [path for path in added_paths if path in stored_as_large and path not in large]
    if missing := await use_files(repos, repo, charge, {oid for oid, _ in pointers.values()}):
        raise _not_uploaded(min(missing))
    if charge is not None:
        rules = await _attributes_with_lines(folder, parent, operations, undeclared)
        size = await _size_in_git(folder, parent, request) + len(rules or b"")
        await charge_git_storage(repos, repo, charge, size)
    # Old paths are removed before anything is added: two files may swap their names.
    removals, changes = list[Change](), list[Change]()
    modes = await _modes_of_renamed(folder, parent, operations)
    for operation in operations:
        if isinstance(operation, Delete):
            changes.append(Remove(operation.path, operation.file, operation.folder))
            continue
        if operation.old_path is not None and operation.old_path != operation.path:
            removals.append(Remove(operation.old_path))
        blob = await _blob_for(repos, repo, operation, pointers, stored_as_large, charge)
        changes.append(Put(operation.path, blob, modes.get(operation.old_path, FileMode.BLOB)))
    return PreparedCommit([*removals, *changes], undeclared)


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
    shrunk = {directory for path in _removed_paths(operations) for directory in folders_of(path)}
    grown = {"", *(directory for item in operations for directory in folders_of(item.path))}
    rewritten = await trees.size_of_folders(folder, parent, [*shrunk, *grown]) + OBJECT_OVERHEAD * len(shrunk | grown)
    return contents + entries + rewritten + OBJECT_OVERHEAD + len(request.message)


async def _check_paths(folder: Path, commit: str | None, operations: Sequence[Operation]) -> None:
    """Check the paths of a commit. A removed path may have any name that git accepted in a push."""
    for operation in operations:
        if not isinstance(operation, Delete):
            check_path(operation.path)
    refused = [(path, refusal) for path in _removed_paths(operations) if (refusal := path_error(path))]
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
            pointer = objects.read_pointer(await in_thread(_read, item.content, item.content.size))
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
            check_gitmodules(await in_thread(_read, item.content, MAX_GITMODULES_BYTES + 1))


async def _blob_for(
    repos: Repos,
    repo: Repo,
    operation: AddFile | AddLargeFile,
    pointers: Mapping[str, tuple[str, int]],
    stored_as_large: Collection[str],
    charge: Charge | None,
) -> str:
    """Write the blob of an added file: its content or an LFS pointer."""
    folder, path = repos.folders.of(repo.id), operation.path
    if isinstance(operation, AddLargeFile) or (charge is not None and path in pointers):
        # Pointers of guests are in the canonical form, the only form that `hub/guests/sweep.py` knows.
        return await write_blob(folder, objects.pointer_text(*pointers[path]))
    if path in pointers or path not in stored_as_large:
        return await _blob(folder, operation.content)
    oid = await stored_file.store_content(repos, repo, operation.content, charge)
    return await write_blob(folder, objects.pointer_text(oid, operation.content.size))


def is_large(size: int, *, by_name: bool) -> bool:
    """Whether a file is stored as a large file, by its name or size, independent of the upload method."""
    return size > LARGE_FILE_BYTES or (size > 0 and by_name)


async def _with_attributes(
    folder: Path, parent: str | None, operations: Sequence[Operation], prepared: PreparedCommit
) -> Sequence[Change]:
    """The changes with lines for new large files in .gitattributes, without which a clone would contain pointers. The
    lines are added to the file at `parent`, since concurrent commits may have added others.
    """
    text = await _attributes_with_lines(folder, parent, operations, prepared.undeclared)
    if text is None:
        return prepared.changes
    put = Put(ATTRIBUTES_FILE, await write_blob(folder, text))
    changes = [
        put if isinstance(change, Put) and change.path == ATTRIBUTES_FILE else change for change in prepared.changes
    ]
    return changes if put in changes else [*changes, put]


async def _attributes_with_lines(
    folder: Path, parent: str | None, operations: Sequence[Operation], undeclared: Sequence[str]
) -> bytes | None:
    """The whole .gitattributes with a line for each of these paths; None if it has them already."""
    if not undeclared:
        return None
    before = await _attributes_text_after(folder, parent, operations)
    text = await in_thread(with_lines_for, before, undeclared)
    if len(text) > LARGE_FILE_BYTES:
        raise _too_many_rules()
    return text if text != before else None


async def _attributes_text_after(folder: Path, commit: str | None, operations: Sequence[Operation]) -> bytes:
    """The whole .gitattributes at the root after the operations."""
    for operation in operations:
        if isinstance(operation, AddFile) and operation.path == ATTRIBUTES_FILE:
            return await in_thread(_read, operation.content, LARGE_FILE_BYTES)
    if commit is None or ATTRIBUTES_FILE in _removed_paths(operations):
        return b""
    entry = await objects.entry_at(folder, commit, ATTRIBUTES_FILE)
    if entry is None or entry.type is not objects.EntryType.FILE:
        return b""
    if entry.pointer is not None:
        raise attributes_too_large()
    if entry.size > LARGE_FILE_BYTES:
        raise _too_many_rules()
    return await objects.small_blob(folder, entry.sha)


def _too_many_rules() -> Unprocessable:
    return Unprocessable(
        f"{ATTRIBUTES_FILE} would have more than {LARGE_FILE_BYTES:,} bytes with a line for each large file of this "
        "commit. Replace its lines with a pattern, such as *.dat, and try again."
    )


def attributes_too_large() -> Unprocessable:
    return Unprocessable(
        f"{ATTRIBUTES_FILE} cannot be a large file itself: git uses it to find out which files are large. "
        f"Commit it as text of at most {LARGE_FILE_BYTES:,} bytes."
    )


async def attributes_after(folder: Path, commit: str | None, operations: Sequence[Operation]) -> Attributes:
    """The attributes after the operations."""
    added_paths = [operation.path for operation in operations if not isinstance(operation, Delete)]
    existing = await attributes_of(
        folder, commit, {directory for path in added_paths for directory in folders_of(path)}
    )
    removed = _removed_paths(operations)
    texts = {
        directory: text
        for directory, text in existing.files
        if removed.isdisjoint(
            [f"{directory}/{ATTRIBUTES_FILE}" if directory else ATTRIBUTES_FILE, directory, *folders_of(directory)]
        )
    }
    for operation in operations:
        directory, _, name = operation.path.rpartition("/")
        if name == ATTRIBUTES_FILE and isinstance(operation, AddFile):
            texts[directory] = (await in_thread(_read, operation.content, MAX_EVALUATED_BYTES + 1)).decode(
                errors=LOSSLESS
            )
        elif name == ATTRIBUTES_FILE and isinstance(operation, AddLargeFile):
            texts.pop(directory, None)
    return Attributes(_outermost_first(texts.items()))


def _removed_paths(operations: Sequence[Operation]) -> set[str]:
    """The paths of files and folders that are deleted or renamed."""
    deleted = {operation.path for operation in operations if isinstance(operation, Delete)}
    renamed = {operation.old_path for operation in operations if not isinstance(operation, Delete)}
    return deleted | {path for path in renamed if path is not None}


async def attributes_of(folder: Path, commit: str | None, folders: Collection[str]) -> Attributes:
    """The attributes in these folders and at the root."""
    if commit is None:
        return Attributes([])
    folder_by_path = {
        f"{directory}/{ATTRIBUTES_FILE}" if directory else ATTRIBUTES_FILE: directory for directory in {"", *folders}
    }
    found = await trees.file_prefixes(folder, commit, list(folder_by_path), MAX_EVALUATED_BYTES + 1)
    return Attributes(_outermost_first((folder_by_path[path], text.decode(errors=LOSSLESS)) for path, text in found))


def _outermost_first(texts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(texts, key=lambda pair: (pair[0].count("/") if pair[0] else -1, pair[0]))


async def start_of_text(folder: Path, commit: str, path: str) -> str | None:
    """The beginning of a file, as much as is evaluated for patterns."""
    found = await trees.file_prefixes(folder, commit, [path], MAX_EVALUATED_BYTES + 1)
    return found[0][1].decode(errors=LOSSLESS) if found else None


async def _blob(folder: Path, content: Content) -> str:
    if content.file is not None:
        return await write_file_as_blob(folder, content.file)
    return await write_blob(folder, content.data)


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


def _read(content: Content, max_bytes: int) -> bytes:
    if content.file is None:
        return content.data[:max_bytes]
    with content.file.open("rb") as file:
        return file.read(max_bytes)


def writable_ref(revision: Revision) -> str:
    """The branch or pull request that a commit to this revision moves."""
    if revision.ref is None or revision.ref.startswith("refs/tags/"):
        raise NotFound("Commit to a branch or a pull request, not to a tag or a commit.", code="RevisionNotFound")
    return revision.ref
