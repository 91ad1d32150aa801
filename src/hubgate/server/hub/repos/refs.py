"""Moving refs: the one place where a repo's content changes.

The objects are on disk before this is called. One unit of work then takes the repo's next event number, which holds all
other changes of this repo off, moves each ref if it still is where the caller saw it, and writes the event.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hubgate.server import failpoint
from hubgate.server.errors import HubError, NotFound
from hubgate.server.events import outbox
from hubgate.server.events.kinds import Kind
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import store as discussion_store
from hubgate.server.hub.git.refnames import Names
from hubgate.server.hub.guests import store as guest_store
from hubgate.server.hub.guests.charging import Charge, take_up
from hubgate.server.hub.repos import counting, store
from hubgate.server.hub.repos.card import card_at
from hubgate.server.hub.repos.model import MAIN, PULL_REQUESTS, REPO_GONE, Card, Repo, is_pull_request
from hubgate.server.storage.database import Tx


@dataclass(frozen=True)
class Moves:
    """What became of a request to move refs: those that moved, and those that were elsewhere by then, or in whose way
    another stands (git cannot have both refs/heads/a and refs/heads/a/b).
    """

    moved: tuple[RefChange, ...]
    stale: tuple[RefChange, ...]


class RefIsElsewhere(HubError):
    """Somebody else was faster. Edges turn this into 412, a rejected push, or try again."""

    status = 412

    def __init__(self, stale: Sequence[RefChange]) -> None:
        super().__init__(f"{stale[0].ref} was changed meanwhile.")
        self.stale = tuple(stale)


async def move_refs(
    repos: Repos,
    repo: Repo,
    changes: Sequence[RefChange],
    *,
    together: bool,
    added: int | None = None,
    charge: Charge | None = None,
) -> Moves:
    """One event for all that moved. `together`: all or none (RefIsElsewhere). `added`: how many commits longer each
    history gets, where the caller knows; otherwise they are counted. `charge`: of the guest who moves them.
    """
    card = await _card_after(repos, repo, changes)
    counts = await counting.counted(repos, repo, changes) if added is None else {}
    now = repos.clock()

    async def unit(tx: Tx) -> Moves:
        if charge is not None:
            # Before anything of the repo, as everywhere.
            await guest_store.hold_user(tx, charge.user_id)
        moves = await moved_in(tx, repos, repo, changes, card, now, counts, added, by_guest=charge is not None)
        if together and moves.stale:
            raise RefIsElsewhere(moves.stale)
        if charge is not None:
            num = next(int(change.ref.removeprefix(PULL_REQUESTS)) for change in moves.moved)
            await take_up(tx, repo.id, num, charge, now)
        return moves

    failpoint.hit("refs-before-move")
    write = repos.db.write_long if charge is not None and charge.is_long else repos.db.write
    moves = await write(unit)
    failpoint.hit("refs-after-move")
    return moves


async def moved_in(
    tx: Tx,
    repos: Repos,
    repo: Repo,
    changes: Sequence[RefChange],
    card: Card | None,
    now: int,
    counts: Mapping[str, int],
    added: int | None = None,
    *,
    by_guest: bool = False,
) -> Moves:
    """As a part of a larger unit. `card` belongs to the new head, if the head is among the changes; `counts` says how
    many commits lead to the new ids (`counting`).
    """
    # Guests do not put a repo at the top of the lists (attack O72).
    seq = await store.next_seq(tx, repo.id, None if by_guest else now)
    if seq is None:
        raise NotFound(REPO_GONE, code="RepoNotFound")
    moved: list[RefChange] = []
    stale: list[RefChange] = []
    names = await _names(tx, repo, changes)
    for change in changes:
        free = change.old_sha is not None or names.in_the_way(change.ref) is None
        if change.new_sha is not None and is_pull_request(change.ref):
            # Closed or removed since the push was judged: nothing comes after the owner's word (attack O72).
            free = free and await discussion_store.takes_commits(tx, repo.id, change.ref)
        commits = counts.get(change.new_sha or "")
        won = free and await store.move_ref(
            tx, repo.id, change.ref, change.old_sha, change.new_sha, commits=commits, added=added
        )
        (moved if won else stale).append(change)
        if won:
            (names.discard if change.new_sha is None else names.add)(change.ref)
    if not moved:
        # Rolls the number back with everything else.
        raise RefIsElsewhere(stale)
    await store.refs_moved(tx, repo.id)
    head = next((change for change in moved if change.ref == MAIN), None)
    if head is not None and card is not None:
        await store.set_head(tx, repo.id, head.new_sha, card)
    after = await store.by_id(tx, repo.id) or repo
    told = {"updatedRefs": moved}
    await outbox.record(tx, Kind.REPO_CONTENT, after.snapshot, seq, told, repos.base_url, now, by_guest=by_guest)
    return Moves(tuple(moved), tuple(stale))


async def _names(tx: Tx, repo: Repo, changes: Sequence[RefChange]) -> Names:
    """Read only for what is new: nothing stands in the way of a ref that is there."""
    makes_new = any(change.old_sha is None for change in changes)
    return Names(name for name, _ in await store.refs(tx, repo.id)) if makes_new else Names(())


async def _card_after(repos: Repos, repo: Repo, changes: Sequence[RefChange]) -> Card | None:
    head = next((change for change in changes if change.ref == MAIN), None)
    return await card_at(repos.folders.of(repo.id), head.new_sha, repo.type) if head else None
