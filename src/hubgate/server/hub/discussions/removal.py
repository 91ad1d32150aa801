"""Removing a discussion or pull request, and deleting the ref of a closed or merged one. Writers can remove, authors
can only delete the ref.

Removing a discussion also removes its texts from events and ends the guests' charges for texts; removing a pull request
also deletes its ref and ends the charges for git storage. `hub/guests/sweep.py` deletes large files that are no longer
needed, with their charge. Commits that are no longer reachable from a ref are not shown
(`hub/guests/marked_commits.py`).
"""

from hubgate.server.accounts.model import User
from hubgate.server.errors import Conflict, NotFound
from hubgate.server.events.kinds import Kind
from hubgate.server.events.payload import RefChange
from hubgate.server.events.redaction import remove_texts_of
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import recording, store
from hubgate.server.hub.discussions.entries import store as entry_store
from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.guests import store as guest_store
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.refs import move_refs_in
from hubgate.server.search import store as search_store
from hubgate.server.storage.database import Tx


async def remove(repos: Repos, repo: Repo, discussion: Discussion) -> None:
    now = repos.clock()

    async def unit(tx: Tx) -> None:
        found = await recording.lock_and_find(tx, repo, discussion.num)
        await _drop_ref(tx, repos, repo, found, now, by_guest=False)
        # Pending charges and charges for texts or replaced commits are stored under the negated number.
        for num in (found.num, -found.num):
            await guest_store.end_charges(tx, repo.id, num)
        for comment in await entry_store.visible_comments(tx, repo.id, found.num):
            await remove_texts_of(tx, repo.id, comment.id, comment.text_times)
        await store.remove(tx, repo.id, found.num)
        await search_store.remove(tx, found.id)
        await recording.record(tx, repos, repo, Kind.DISCUSSION_DELETE, found, now, by_guest=False)

    # A pull request may have a hundred thousand files.
    await repos.db.write_long(unit)


async def delete_ref(repos: Repos, repo: Repo, discussion: Discussion, user: User) -> None:
    """Delete the ref of a closed or merged pull request. Large files stay charged until they are deleted, and git
    storage until the pull request is removed: authors must not be able to free bytes that are still stored.
    """
    now = repos.clock()

    async def unit(tx: Tx) -> None:
        found = await recording.lock_and_find(tx, repo, discussion.num)
        if found.accepts_commits:
            raise Conflict("Close the pull request first.")
        by_guest = not await guest_store.is_writer(tx, repo.id, user.id)
        if not await _drop_ref(tx, repos, repo, found, now, by_guest=by_guest):
            raise NotFound(f"{found.ref} does not exist.", code="RevisionNotFound")
        await guest_store.release_file_charges(tx, repo.id, found.num)

    await repos.db.write_long(unit)


async def _drop_ref(tx: Tx, repos: Repos, repo: Repo, found: Discussion, now: int, *, by_guest: bool) -> bool:
    sha = await repo_store.ref(tx, repo.id, found.ref) if found.base is not None else None
    if sha is not None:
        dropped = [RefChange(found.ref, sha, None)]
        await move_refs_in(tx, repos, repo, dropped, None, now, {}, by_guest=by_guest)
    return sha is not None
