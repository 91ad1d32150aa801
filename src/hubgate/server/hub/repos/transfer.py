"""Moving a repo to another name or owner. The old name redirects to the new one until it is unlinked or the repo
is deleted; after a move to another namespace, only if that was allowed (`redirects.py`).
"""

from typing import Any

import msgspec

from hubgate.server.accounts.account_locks import require_current_credentials
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.clock import DAY, SECOND
from hubgate.server.errors import Conflict, NotFound
from hubgate.server.events import outbox
from hubgate.server.events.kinds import Kind
from hubgate.server.events.payload import Snapshot
from hubgate.server.hub.context import Repos
from hubgate.server.hub.quotas.quotas import check_moved, used_if_limited
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import REPO_GONE, UNLINK_FIRST, Repo, RepoOwner, RepoType, check_repo_name
from hubgate.server.hub.repos.redirects import update_redirects
from hubgate.server.hub.repos.search_documents import update_name_and_access
from hubgate.server.hub.repos.transactions import lock_owner, record_audit
from hubgate.server.storage.database import Tx
from hubgate.server.throttle.rate_limiter import Limit

MOVES_OF_REPO = Limit(
    "move repo", 20, DAY // SECOND, "A repo can be renamed or moved 20 times a day. Try again in {duration}."
)


async def move(
    repos: Repos, repo: Repo, new_owner: RepoOwner, name: str, actor: Actor, *, leave_redirect: bool = False
) -> Repo:
    """Move a repo. The event describes the repo before the move, with the new name in `movedTo`. `leave_redirect`
    applies to moves to another owner, by an actor who may allow the redirect.
    """
    check_repo_name(name)
    now = repos.clock()

    async def unit(tx: Tx) -> Repo:
        owner = await lock_owner(tx, new_owner)
        # An intruder whose session was revoked during the wait must not leave a redirect behind (attack O67).
        await require_current_credentials(tx, actor.user_id, actor.credentials_version)
        seq = await store.next_seq(tx, repo.id, now)
        before = await store.by_id(tx, repo.id)
        if seq is None or before is None or before.owner_id != repo.owner_id:
            # Deleted, or moved to another owner, who did not authorize this.
            raise NotFound(REPO_GONE, code="RepoNotFound")
        if (before.owner_id, before.name) == (owner.id, name):
            raise Conflict(f"A {repo.type} repository called {before.full_name} already exists")
        same_owner = before.owner_id == owner.id
        if not same_owner:
            await update_redirects(tx, before, owner, name, leave=leave_redirect, actor=actor, now=now)
        await store.retire_names(tx, repo.id, now)
        if not await store.claim_name(tx, repo.id, owner.id, repo.type, name):
            raise await _name_conflict(tx, repo, owner, name)
        if actor.user_id is not None:
            # Each move leaves a redirect that the owner of the namespace would have to unlink (attack O76).
            await repos.limiter.require_in(tx, MOVES_OF_REPO, repo.id)
        used_before = await used_if_limited(tx, repos, owner)
        await store.set_owner_and_name(tx, repo.id, owner, name)
        await check_moved(tx, repos, owner, used_before)
        if before.repo_type is RepoType.SPACE:
            # Its app knows the name.
            await repos.on_space_content(tx, repo.id, before.card, now)
        moved_to = _moved_to(owner.name, name, owner.id)
        await outbox.record(tx, Kind.REPO_MOVE, before.snapshot, seq, moved_to, repos.base_url, now)
        text, to = f"moved the {before.label} to {owner.name}/{name}", f"{owner.name}/{name}"
        for namespace in dict.fromkeys((before.owner, owner)):
            redirects = {} if same_owner else {"redirect": leave_redirect}
            await record_audit(tx, namespace, EntryType.REPO_MOVE, before, text, actor, now, to=to, **redirects)
        after = await store.by_id(tx, repo.id) or before
        await update_name_and_access(tx, after)
        return after

    return await repos.db.write(unit)


async def _name_conflict(tx: Tx, repo: Repo, owner: RepoOwner, name: str) -> Conflict:
    text = f"A {repo.type} repository called {owner.name}/{name} already exists"
    is_redirect = await store.is_redirect(tx, owner.id, repo.type, name)
    return Conflict(f"{text}: {UNLINK_FIRST}" if is_redirect else text)


async def record_owner_rename(base_url: str, tx: Tx, owner_id: str, old: str, new: str, now: int) -> None:
    """Record the move of all repos of a renamed account, in the transaction that renames and has locked the account: no
    repo is created in it or moved to it concurrently. Few statements for all repos, since an owner may have thousands.
    """
    moved = []
    for row in await store.next_seq_of_all(tx, owner_id):
        tags = msgspec.json.decode(row["tags"], type=list[str])
        name, private = f"{old}/{row['name']}", bool(row["private"])
        before = Snapshot(row["id"], row["type"], name, owner_id, private, row["head_sha"], tags)
        moved.append((before, int(row["last_seq"]), _moved_to(new, row["name"], owner_id)))
    await outbox.record_all(tx, Kind.REPO_MOVE, moved, base_url, now)


def _moved_to(owner_name: str, name: str, owner_id: str) -> dict[str, Any]:
    return {"movedTo": {"name": f"{owner_name}/{name}", "owner": {"id": owner_id}}}
