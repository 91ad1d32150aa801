"""Giving a repo another name or owner. Within its namespace the old name leads to the new one for as long as the repo
lives; from another namespace only where that was allowed (`redirects.py`).
"""

from typing import Any

import msgspec

from hubgate.server.audit.model import Actor
from hubgate.server.audit.model import Kind as Entry
from hubgate.server.errors import Conflict, NotFound
from hubgate.server.events import outbox
from hubgate.server.events.kinds import Kind
from hubgate.server.events.payload import Snapshot
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.auditing import note
from hubgate.server.hub.repos.holding import hold_owner
from hubgate.server.hub.repos.model import REPO_GONE, UNLINK_FIRST, Owner, Repo, check_repo_name
from hubgate.server.hub.repos.redirects import settle_names
from hubgate.server.storage.database import Tx


async def move(
    repos: Repos, repo: Repo, new_owner: Owner, name: str, actor: Actor, *, leave_redirect: bool = False
) -> Repo:
    """The event tells watchers of the old place: `repo` is as it was, `movedTo` where it is. `leave_redirect` is about
    moves to another owner, and by those who may allow it.
    """
    check_repo_name(name)
    now = repos.clock()

    async def unit(tx: Tx) -> Repo:
        owner = await hold_owner(tx, new_owner)
        seq = await store.next_seq(tx, repo.id, now)
        before = await store.by_id(tx, repo.id)
        if seq is None or before is None or before.owner_id != repo.owner_id:
            # Gone, or another's by now, who was not asked.
            raise NotFound(REPO_GONE, code="RepoNotFound")
        if (before.owner_id, before.name) == (owner.id, name):
            raise Conflict(f"A {repo.type} repository called {before.full_name} already exists")
        stays = before.owner_id == owner.id
        if not stays:
            await settle_names(tx, before, owner, name, leave=leave_redirect, actor=actor, now=now)
        await store.retire_names(tx, repo.id, now)
        if not await store.claim_name(tx, repo.id, owner.id, repo.type, name):
            raise await _taken(tx, repo, owner, name)
        await store.rename(tx, repo.id, owner, name)
        moved_to = _moved_to(owner.name, name, owner.id)
        await outbox.record(tx, Kind.REPO_MOVE, before.snapshot, seq, moved_to, repos.base_url, now)
        text, to = f"moved the {before.label} to {owner.name}/{name}", f"{owner.name}/{name}"
        for place in dict.fromkeys((before.owner, owner)):
            redirects = {} if stays else {"redirect": leave_redirect}
            await note(tx, place, Entry.REPO_MOVE, before, text, actor, now, to=to, **redirects)
        return await store.by_id(tx, repo.id) or before

    return await repos.db.write(unit)


async def _taken(tx: Tx, repo: Repo, owner: Owner, name: str) -> Conflict:
    text = f"A {repo.type} repository called {owner.name}/{name} already exists"
    leads = await store.is_redirect(tx, owner.id, repo.type, name)
    return Conflict(f"{text}: {UNLINK_FIRST}" if leads else text)


async def moved_with_owner(base_url: str, tx: Tx, owner_id: str, old: str, new: str, now: int) -> None:
    """In the unit that renames the account, which holds it: no repo is created there or moved there meanwhile. An owner
    may have thousands, so there is a handful of statements for all of them.
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
