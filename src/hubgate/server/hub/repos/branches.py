"""Creating and deleting branches and tags, and squashing the history of a branch or pull request."""

from hubgate.server.accounts.model import User
from hubgate.server.errors import BadRequest, Conflict, Unavailable, Unprocessable
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions.store import accepts_commits
from hubgate.server.hub.git import objects
from hubgate.server.hub.git.refnames import RefNames, invalid_reason
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.git.writes import Author, NewCommit, write_commit, write_squashed_commit, write_tag
from hubgate.server.hub.guests.marked_commits import mark
from hubgate.server.hub.repos import lookup, store
from hubgate.server.hub.repos.model import MAIN, Repo, is_pull_request
from hubgate.server.hub.repos.refs import RefConflict, move_refs

MAX_ATTEMPTS = 50


def check_ref(kind: str, name: str) -> str:
    """Return the full ref name of a branch ("heads") or tag ("tags"); raise Unprocessable if the name is invalid. A
    short name that begins with refs/ would not be addressable.
    """
    ref = f"refs/{kind}/{name}"
    reason = invalid_reason(ref)
    if reason is not None or name.startswith("refs/"):
        raise Unprocessable(f"This cannot be the name of a branch or tag: {name[:100]!r}.")
    return ref


async def create_branch(
    repos: Repos, repo: Repo, user: User, name: str, start: str | None, *, empty: bool, overwrite: bool
) -> None:
    ref = check_ref("heads", name)
    if empty:
        draft = NewCommit(None, [], f"Create branch {name}", Author.of_user(user.name, repos.base_url), repos.clock())
        sha = await write_commit(repos.folders.of(repo.id), draft)
    else:
        sha = (await lookup.revision(repos, repo, start or "main")).sha
    before = await store.ref(repos.db, repo.id, ref)
    if before is not None and not overwrite:
        raise Conflict(f"Reference {ref} already exists")
    await _move(repos, repo, RefChange(ref, before, sha), f"Reference {ref} already exists")


async def delete_branch(repos: Repos, repo: Repo, name: str) -> None:
    ref = f"refs/heads/{name}"
    if ref == MAIN:
        raise BadRequest(f"Cannot delete {MAIN}")
    before = await store.ref(repos.db, repo.id, ref)
    if before is None:
        raise BadRequest(f"Invalid rev id: {ref}")
    await _move(repos, repo, RefChange(ref, before, None), f"{ref} was changed by another request.")


async def create_tag(repos: Repos, repo: Repo, user: User, name: str, rev: str, message: str) -> None:
    # The revision first: clients expect the error about an unknown revision, even if the name is invalid too.
    target = (await lookup.revision(repos, repo, rev)).sha
    ref = check_ref("tags", name)
    if await store.ref(repos.db, repo.id, ref) is not None:
        raise Conflict(f"Tag {name} already exists")
    if message:
        folder, author, now = repos.folders.of(repo.id), Author.of_user(user.name, repos.base_url), repos.clock()
        target = await write_tag(folder, name, target, message, author, now)
    await _move(repos, repo, RefChange(ref, None, target), f"Tag {name} already exists")


async def delete_tag(repos: Repos, repo: Repo, name: str) -> None:
    ref = f"refs/tags/{name}"
    before = await store.ref(repos.db, repo.id, ref)
    if before is None:
        if await store.ref(repos.db, repo.id, f"refs/heads/{name}") is not None:
            raise BadRequest(f"{name} is a branch, not a tag.")
        raise lookup.revision_not_found(ref)
    await _move(repos, repo, RefChange(ref, before, None), f"{ref} was changed by another request.")


async def squash(repos: Repos, repo: Repo, user: User, rev: str, message: str) -> None:
    """Replace the history of a branch or open pull request with one commit. Concurrent commits are squashed too. A
    squashed pull request has no commit in common with its target and cannot be merged.
    """
    ref = (await lookup.revision(repos, repo, rev)).ref
    if ref is None or not (ref.startswith("refs/heads/") or is_pull_request(ref)):
        raise lookup.revision_not_found(rev)
    folder, author = repos.folders.of(repo.id), Author.of_user(user.name, repos.base_url)
    for _ in range(MAX_ATTEMPTS):
        head = await store.ref(repos.db, repo.id, ref)
        if head is None or (is_pull_request(ref) and not await accepts_commits(repos.db, repo.id, ref)):
            raise lookup.revision_not_found(rev)
        new = await in_thread(write_squashed_commit, folder, head, message, author, repos.clock())
        if is_pull_request(ref):
            await mark(repos, repo, [new])
        try:
            await move_refs(repos, repo, [RefChange(ref, head, new)], atomic=True, user_id=user.id)
        except RefConflict:
            continue
        return
    raise Unavailable("The branch changes faster than it can be squashed. Try again.")


async def _move(repos: Repos, repo: Repo, change: RefChange, conflict: str) -> None:
    if change.old_sha == change.new_sha:
        return
    if change.old_sha is None:
        await _check_new_ref(repos, repo, change.ref)
    try:
        await move_refs(repos, repo, [change], atomic=True)
    except RefConflict:
        raise Conflict(conflict) from None


async def _check_new_ref(repos: Repos, repo: Repo, ref: str) -> None:
    names = RefNames(name for name, _ in await repos.db.read_long(lambda tx: store.refs(tx, repo.id)))
    if names.branch_and_tag_count >= repos.limits.refs:
        raise Unprocessable(f"A repo may have at most {repos.limits.refs:,} refs.")
    other = names.conflicting_ref(ref)
    if other is not None:
        raise Conflict(f"{ref} conflicts with {other}: git cannot have both.")


async def list_refs(repos: Repos, repo: Repo) -> list[tuple[str, str]]:
    """Every ref with the commit it points to, in git's order."""
    pairs = await repos.db.read_long(lambda tx: store.refs(tx, repo.id))
    folder = repos.folders.of(repo.id)
    tags = [sha for name, sha in pairs if name.startswith("refs/tags/")]
    commits = await objects.commits_of(folder, tags) if tags else {}
    return [(name, commits.get(sha, sha)) for name, sha in pairs]
