"""A commit that a user creates on a page. It is applied on top of the current head, which may have moved since the page
was opened, unless one of its own files has changed since then.
"""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.access.caller import Caller
from hubgate.server.errors import Conflict, FieldErrors, NotFound, PreconditionFailed, Unavailable
from hubgate.server.hub.commits.commit import head_of
from hubgate.server.hub.commits.model import CommitRequest, CommitResult, Delete
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import trees
from hubgate.server.hub.repos import lookup
from hubgate.server.hub.repos.model import Repo

# Each attempt fails only if another commit has moved the branch in the meantime.
MAX_ATTEMPTS = 10

# Writes the commit to a branch, or as a pull request.
CreateCommit = Callable[[Repos, Repo, Caller, str, CommitRequest], Awaitable[CommitResult]]


class FilesChanged(Conflict):
    """Files of the change were changed since the page was opened. `head` is the commit that has the newer ones."""

    def __init__(self, paths: Sequence[str], head: str) -> None:
        names = ", ".join(paths[:3]) + (", …" if len(paths) > 3 else "")
        super().__init__(f"Changed by another commit since you opened this page: {names}.")
        self.paths = paths
        self.head = head


class PageChange(Struct, frozen=True):
    """`seen` is the commit that the page showed. `new_path` is a path that must not exist yet, if any."""

    request: CommitRequest
    seen: str
    new_path: str = ""

    @property
    def paths(self) -> list[str]:
        """All paths that the change reads or writes."""
        found = [operation.path for operation in self.request.operations]
        renamed = [item.old_path for item in self.request.operations if not isinstance(item, Delete)]
        return [*found, *(path for path in renamed if path is not None)]


async def apply(
    repos: Repos, repo: Repo, caller: Caller, ref: str, change: PageChange, create: CreateCommit
) -> CommitResult:
    """Commit the change. Raises FilesChanged if that would undo the work of another commit."""
    for _ in range(MAX_ATTEMPTS):
        head = await head_of(repos, repo, ref)
        await _check_files(repos, repo, change, head)
        try:
            return await create(repos, repo, caller, ref, replace(change.request, parent=head))
        except PreconditionFailed:
            continue
    raise Unavailable("The branch changes faster than this commit can be applied. Try again.")


async def _check_files(repos: Repos, repo: Repo, change: PageChange, head: str) -> None:
    folder = repos.folders.of(repo.id)
    if change.new_path and await trees.existing_paths(folder, head, [change.new_path]):
        raise FieldErrors({"path": f"{change.new_path} exists already. Choose another name."})
    await check_unchanged(repos, repo, change.seen, head, change.paths)


async def check_unchanged(repos: Repos, repo: Repo, seen: str, head: str, paths: Sequence[str]) -> None:
    """Raise FilesChanged if one of the paths differs between the two commits."""
    if head == seen:
        return
    before = await _ids(repos, repo, await seen_commit(repos, repo, seen), paths)
    after = await _ids(repos, repo, head, paths)
    if changed := [path for path in paths if before.get(path) != after.get(path)]:
        raise FilesChanged(changed, head)


async def seen_commit(repos: Repos, repo: Repo, seen: str) -> str | None:
    """The commit that the page showed; None if it is no longer part of the repo, as after a forced push."""
    try:
        return (await lookup.revision(repos, repo, seen)).sha
    except NotFound:
        return None


async def _ids(repos: Repos, repo: Repo, commit: str | None, paths: Sequence[str]) -> dict[str, str]:
    if commit is None:
        return {}
    found = await trees.entries_at(repos.folders.of(repo.id), commit, list(paths))
    return {entry.path: f"{entry.sha} {entry.mode}" for entry in found}
