"""Making a commit: its blobs land first, then trees and the commit itself on top of what the branch is by then, then
the branch moves, if it still is there. Whoever named no parent tries again; whoever did is told (412).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hubgate.server import failpoint
from hubgate.server.accounts.model import User
from hubgate.server.errors import NotFound, PreconditionFailed, Unavailable, Unprocessable
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.commits.attributes import LONGEST, NAME, Attributes, announcing, folders_of
from hubgate.server.hub.commits.model import AddFile, AddLarge, Committed, Content, Delete, Operation, Request
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import objects, trees
from hubgate.server.hub.git.modules import LONGEST as LONGEST_MODULES
from hubgate.server.hub.git.modules import MODULES, check_modules
from hubgate.server.hub.git.paths import check_path, may_be_pushed, refusal_of
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.git.writing import Change, Draft, Put, Remove, write_blob, write_blob_of, write_commit
from hubgate.server.hub.guests.charging import Charge, add_git, charge_of, use_files
from hubgate.server.hub.guests.marked_commits import mark
from hubgate.server.hub.lfs import keeping
from hubgate.server.hub.lfs import store as lfs_store
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.authors import author_of
from hubgate.server.hub.repos.finding import Revision
from hubgate.server.hub.repos.model import Repo, is_pull_request
from hubgate.server.hub.repos.refs import RefIsElsewhere, move_refs

# The exact words that existing clients look for.
STALE_PARENT = "The branch was updated since you opened this page. Please refresh and try again."
MOST_TRIES = 200
# Larger files are kept beside git even if nothing in .gitattributes asks for it. That itself grows no larger: lines are
# added to it in memory, and some hundred thousand of them are enough.
LARGE = 10 * 1024 * 1024
# What an object takes beside its content, for charging guests.
OBJECT_SIZE = 256
# Bytes that are no UTF-8 are written as they were read.
UNCHANGED = "surrogateescape"


@dataclass(frozen=True, slots=True)
class Landed:
    """What the trees have to change, and which of the large files nothing in .gitattributes asked for."""

    changes: Sequence[Change]
    unannounced: Sequence[str]


async def commit(repos: Repos, repo: Repo, user: User, ref: str, request: Request) -> Committed:
    """On the branch or pull request `ref`, which exists."""
    head = await _head(repos, repo, ref)
    check_parent(request, head)
    charge = await charge_of(repos, repo, user.id) if is_pull_request(ref) else None
    on_disk = await landed(repos, repo, head, request, charge)
    async with repos.turns.on(repo.id, ref):
        return await _on_top(repos, repo, user, ref, request, on_disk, charge)


async def _on_top(
    repos: Repos, repo: Repo, user: User, ref: str, request: Request, on_disk: Landed, charge: Charge | None
) -> Committed:
    for _ in range(MOST_TRIES):
        head = await _head(repos, repo, ref)
        check_parent(request, head)
        new = await written(repos, repo, user, head, request, on_disk)
        if is_pull_request(ref):
            await mark(repos, repo, [new])
        try:
            await move_refs(repos, repo, [RefChange(ref, head, new)], together=True, added=1, charge=charge)
        except RefIsElsewhere:
            continue
        return Committed(new)
    raise Unavailable("The branch changes faster than this commit can be put on top. Try again.")


async def written(repos: Repos, repo: Repo, user: User, parent: str | None, request: Request, on_disk: Landed) -> str:
    """The commit object, with nothing pointing at it yet."""
    changes = await _announced(repos.folders.of(repo.id), parent, request.operations, on_disk)
    author = author_of(user, repos.base_url)
    draft = Draft(parent, changes, request.message, author, repos.clock())
    new = await write_commit(repos.folders.of(repo.id), draft)
    failpoint.hit("commit-objects-landed")
    return new


async def landed(repos: Repos, repo: Repo, parent: str, request: Request, charge: Charge | None) -> Landed:
    """The blobs of all files, on disk. A guest is charged for all of the commit first."""
    folder, operations = repos.folders.of(repo.id), request.operations
    await _check_paths(folder, parent, operations)
    attributes = await attributes_at(folder, parent, operations)
    coming = [operation.path for operation in operations if not isinstance(operation, Delete)]
    large = await in_thread(attributes.large_among, coming, repos.limits.judging_seconds)
    await use_files(repos, repo, charge, {item.oid for item in operations if isinstance(item, AddLarge)})
    if charge is not None:
        await add_git(repos, repo, charge, await _size_in_git(folder, parent, request))
    # What was renamed goes before anything comes: two files may swap their names.
    gone, changes, unannounced = list[Change](), list[Change](), list[str]()
    for operation in operations:
        if isinstance(operation, Delete):
            changes.append(Remove(operation.path, operation.file, operation.folder))
            continue
        if operation.old_path is not None and operation.old_path != operation.path:
            gone.append(Remove(operation.old_path))
        if isinstance(operation, AddLarge):
            sha, is_large = await _pointer(repos, repo, operation.oid, operation.size), True
        else:
            sha, is_large = await _added(repos, repo, operation, charge, by_name=operation.path in large)
        changes.append(Put(operation.path, sha))
        if is_large and operation.path == NAME:
            raise large_itself()
        if is_large and operation.path not in large:
            unannounced.append(operation.path)
    if charge is not None:
        rules = await _rules_after(folder, parent, operations, unannounced)
        await add_git(repos, repo, charge, len(rules) if rules else 0)
    return Landed([*gone, *changes], unannounced)


async def _size_in_git(folder: Path, parent: str, request: Request) -> int:
    """About as many bytes as the commit adds: contents, the message, and every folder that is written anew. One of
    100,000 files takes megabytes, whatever is changed in it.
    """
    operations = request.operations
    contents = sum(item.content.size for item in operations if isinstance(item, AddFile))
    entries = sum(OBJECT_SIZE + len(item.path) for item in operations)
    # A folder that something leaves and something comes to is written twice.
    left = {inside for path in _gone(operations) for inside in folders_of(path)}
    entered = {"", *(inside for item in operations for inside in folders_of(item.path))}
    trees_anew = await trees.size_of_folders(folder, parent, [*left, *entered]) + OBJECT_SIZE * len(left | entered)
    return contents + entries + trees_anew + OBJECT_SIZE + len(request.message)


async def _check_paths(folder: Path, commit: str | None, operations: Sequence[Operation]) -> None:
    """What goes may have any name that git took in a push."""
    for operation in operations:
        if not isinstance(operation, Delete):
            check_path(operation.path)
    refused = [(path, refusal) for path in _gone(operations) if (refusal := refusal_of(path))]
    if not refused:
        return
    there = await trees.names_at(folder, commit, [path for path, _ in refused if may_be_pushed(path)]) if commit else ()
    for path, refusal in refused:
        if path not in there:
            raise refusal


async def _added(
    repos: Repos, repo: Repo, operation: AddFile, charge: Charge | None, *, by_name: bool
) -> tuple[str, bool]:
    """The blob that stands in git for a file that came inside the commit, and whether the file is kept beside git."""
    folder, content = repos.folders.of(repo.id), operation.content
    is_short = content.size <= objects.LONGEST_POINTER
    pointer = objects.read_pointer(await in_thread(_read, content, content.size)) if is_short else None
    if pointer is not None:
        # It would be taken for the file itself from here on: whoever merely knows its hash must not have it.
        await _check_sent(repos, repo, pointer.oid, pointer.size)
        await use_files(repos, repo, charge, [pointer.oid])
        if charge is not None:
            # In the one form that `hub/guests/sweep.py` knows.
            return await write_blob(folder, objects.pointer_text(pointer.oid, pointer.size)), True
        return await _blob(folder, content), True
    if is_large(content.size, by_name=by_name):
        oid = await keeping.keep_content(repos, repo, content, charge)
        return await write_blob(folder, objects.pointer_text(oid, content.size)), True
    if operation.path.lower() == MODULES:
        check_modules(await in_thread(_read, content, LONGEST_MODULES + 1))
    return await _blob(folder, content), False


def is_large(size: int, *, by_name: bool) -> bool:
    """Whether a file is kept beside git, by its name or by its size, however it arrives."""
    return size > LARGE or (size > 0 and by_name)


async def _announced(
    folder: Path, parent: str | None, operations: Sequence[Operation], on_disk: Landed
) -> Sequence[Change]:
    """With lines in .gitattributes that say so, or a clone would hold pointers instead of these files. They are added
    to what the file is at `parent`: others may have announced theirs since the blobs landed.
    """
    text = await _rules_after(folder, parent, operations, on_disk.unannounced)
    if text is None:
        return on_disk.changes
    put = Put(NAME, await write_blob(folder, text))
    changes = [put if isinstance(change, Put) and change.path == NAME else change for change in on_disk.changes]
    return changes if put in changes else [*changes, put]


async def _rules_after(
    folder: Path, parent: str | None, operations: Sequence[Operation], unannounced: Sequence[str]
) -> bytes | None:
    """The whole .gitattributes with a line for each of these; None if it has them."""
    if not unannounced:
        return None
    before = await _rules_to_be(folder, parent, operations)
    text = await in_thread(announcing, before, unannounced)
    if len(text) > LARGE:
        raise _too_many_rules()
    return text if text != before else None


async def _rules_to_be(folder: Path, commit: str | None, operations: Sequence[Operation]) -> bytes:
    """All of the .gitattributes at the root, as it will be after the operations."""
    for operation in operations:
        if isinstance(operation, AddFile) and operation.path == NAME:
            return await in_thread(_read, operation.content, LARGE)
    if commit is None or NAME in _gone(operations):
        return b""
    entry = await objects.entry_at(folder, commit, NAME)
    if entry is None or entry.type is not objects.EntryType.FILE:
        return b""
    if entry.pointer is not None:
        raise large_itself()
    if entry.size > LARGE:
        raise _too_many_rules()
    return await objects.small_blob(folder, entry.sha)


def _too_many_rules() -> Unprocessable:
    return Unprocessable(
        f"{NAME} would have more than {LARGE:,} bytes with a line for each large file of this commit. "
        "Replace its lines by a pattern, such as *.dat, and try again."
    )


def large_itself() -> Unprocessable:
    return Unprocessable(
        f"{NAME} cannot be a large file itself: git reads from it which files are. "
        f"Commit it as text of at most {LARGE:,} bytes."
    )


async def attributes_at(folder: Path, commit: str | None, operations: Sequence[Operation]) -> Attributes:
    """As they will be after the operations."""
    coming = [operation.path for operation in operations if not isinstance(operation, Delete)]
    there = await attributes_of(folder, commit, {inside for path in coming for inside in folders_of(path)})
    gone = _gone(operations)
    texts = {
        inside: text
        for inside, text in there.files
        if gone.isdisjoint([f"{inside}/{NAME}" if inside else NAME, inside, *folders_of(inside)])
    }
    for operation in operations:
        inside, _, name = operation.path.rpartition("/")
        if name == NAME and isinstance(operation, AddFile):
            texts[inside] = (await in_thread(_read, operation.content, LONGEST + 1)).decode(errors=UNCHANGED)
        elif name == NAME and isinstance(operation, AddLarge):
            texts.pop(inside, None)
    return Attributes(_outermost_first(texts.items()))


def _gone(operations: Sequence[Operation]) -> set[str]:
    """The paths of files and folders that go, before anything comes."""
    deleted = {operation.path for operation in operations if isinstance(operation, Delete)}
    renamed = {operation.old_path for operation in operations if not isinstance(operation, Delete)}
    return deleted | {path for path in renamed if path is not None}


async def attributes_of(folder: Path, commit: str | None, folders: Collection[str]) -> Attributes:
    """Those that stand in these folders and at the root."""
    if commit is None:
        return Attributes([])
    places = {f"{inside}/{NAME}" if inside else NAME: inside for inside in {"", *folders}}
    found = await trees.starts_at(folder, commit, list(places), LONGEST + 1)
    return Attributes(_outermost_first((places[path], text.decode(errors=UNCHANGED)) for path, text in found))


def _outermost_first(texts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(texts, key=lambda pair: (pair[0].count("/") if pair[0] else -1, pair[0]))


async def start_of_text(folder: Path, commit: str, path: str) -> str | None:
    """As much of it as patterns are judged of."""
    found = await trees.starts_at(folder, commit, [path], LONGEST + 1)
    return found[0][1].decode(errors=UNCHANGED) if found else None


async def _blob(folder: Path, content: Content) -> str:
    if content.file is not None:
        return await write_blob_of(folder, content.file)
    return await write_blob(folder, content.text)


async def _pointer(repos: Repos, repo: Repo, oid: str, announced: int | None) -> str:
    size = await _check_sent(repos, repo, oid, announced)
    return await write_blob(repos.folders.of(repo.id), objects.pointer_text(oid, size))


async def _check_sent(repos: Repos, repo: Repo, oid: str, announced: int | None) -> int:
    size = await lfs_store.size_of(repos.db, repo.id, oid)
    if size is None or not await in_thread(repos.large_files.has, oid, size):
        raise Unprocessable(f"The large file {oid} was not uploaded to this repo.")
    if announced is not None and announced != size:
        raise Unprocessable(f"The large file {oid} has {size} bytes, not {announced}.")
    return size


async def _head(repos: Repos, repo: Repo, ref: str) -> str:
    sha = await store.ref(repos.db, repo.id, ref)
    if sha is None:
        raise NotFound(f"Invalid rev id: {ref}", code="RevisionNotFound")
    return sha


def check_parent(request: Request, head: str) -> None:
    if request.parent is not None and not head.startswith(request.parent.lower()):
        raise PreconditionFailed(STALE_PARENT)


def _read(content: Content, most: int) -> bytes:
    if content.file is None:
        return content.text[:most]
    with content.file.open("rb") as file:
        return file.read(most)


def writable_ref(revision: Revision) -> str:
    """The branch or pull request that a commit to this revision moves."""
    if revision.ref is None or revision.ref.startswith("refs/tags/"):
        raise NotFound("Commit to a branch or a pull request, not to a tag or a commit.", code="RevisionNotFound")
    return revision.ref
