"""Deleting a repo, and the repos of a deleted account."""

from hubgate.server import failpoint
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.errors import NotFound
from hubgate.server.events import outbox
from hubgate.server.events.kinds import Kind
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.quotas.store import forget_used
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import REPO_GONE, Repo
from hubgate.server.hub.repos.transactions import record_audit
from hubgate.server.storage.database import Tx


async def delete(repos: Repos, repo: Repo, actor: Actor) -> None:
    """Delete a repo's rows and record the event, then delete its folder. If this process dies in between, housekeeping
    deletes the folder.
    """
    now = repos.clock()

    async def unit(tx: Tx) -> None:
        if not await _delete_rows(tx, repos.base_url, repo, now):
            raise NotFound(REPO_GONE, code="RepoNotFound")
        await record_audit(tx, repo.owner, EntryType.REPO_DELETE, repo, f"deleted the {repo.label}", actor, now)

    await repos.db.write_long(unit)
    failpoint.hit("repo-after-delete")
    await in_thread(repos.folders.remove, repo.id)


async def _delete_rows(tx: Tx, base_url: str, repo: Repo, now: int) -> bool:
    seq = await store.next_seq(tx, repo.id, now)
    last = await store.by_id(tx, repo.id)
    if seq is None or last is None or last.owner_id != repo.owner_id:
        return False
    await outbox.record(tx, Kind.REPO_DELETE, last.snapshot, seq, {}, base_url, now)
    await store.remove(tx, repo.id)
    return True


async def delete_with_owner(base_url: str, tx: Tx, owner_id: str, now: int) -> None:
    """Delete all repos of an account, in the transaction that deletes and has locked the account: no repo is created in
    it or moved to it concurrently.
    """
    for repo in await store.of_owner(tx, owner_id):
        await _delete_rows(tx, base_url, repo, now)
    await forget_used(tx, owner_id)
