"""Moving refs: the only place where a repo's content changes.

The objects are already on disk. One transaction takes the repo's next event number, which locks the repo, moves each
ref that still points to the id that the caller read, and records the event.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from hubgate.server import failpoint
from hubgate.server.accounts.account_locks import lock_account_by_id
from hubgate.server.errors import HubError, NotFound
from hubgate.server.events import outbox
from hubgate.server.events.kinds import Kind
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import store as discussion_store
from hubgate.server.hub.discussions.entries import store as entry_store
from hubgate.server.hub.git.refnames import RefNames
from hubgate.server.hub.guests.charges import Charge, assign_to_pull_request
from hubgate.server.hub.guests.merged_files import use_merged_files
from hubgate.server.hub.repos import commit_counts, store
from hubgate.server.hub.repos.card import card_at
from hubgate.server.hub.repos.model import MAIN, REPO_GONE, Card, Repo, RepoType, is_pull_request, pull_request_of
from hubgate.server.hub.repos.new_commits import commits_added
from hubgate.server.hub.repos.search_documents import document_of
from hubgate.server.search import store as search_store
from hubgate.server.storage.database import Tx


class MoveResult(Struct, frozen=True):
    """The result of moving refs: `stale` are refs that were changed concurrently or conflict with another ref (git
    cannot have both refs/heads/a and refs/heads/a/b).
    """

    moved: tuple[RefChange, ...]
    stale: tuple[RefChange, ...]


class RefConflict(HubError):
    """A ref was changed concurrently. Callers answer with 412, reject the push or retry."""

    status = 412

    def __init__(self, stale: Sequence[RefChange]) -> None:
        super().__init__(f"{stale[0].ref} was changed by another request.")
        self.stale = tuple(stale)


async def move_refs(
    repos: Repos,
    repo: Repo,
    changes: Sequence[RefChange],
    *,
    atomic: bool,
    added: int | None = None,
    charge: Charge | None = None,
    user_id: str = "",
) -> MoveResult:
    """Move refs, with one event for all that moved. `atomic`: all or none (RefConflict). `added`: the number of
    commits that each history grows by, if the caller knows; otherwise the commits are counted. `charge`: the charge
    of a guest, whose push moves the ref of one pull request. `user_id`: the user who adds commits to pull requests.
    Raises `QuotaExceeded` if a branch or tag brings in files of guests for which the owner has no room.
    """
    await use_merged_files(repos, repo, changes)
    card = await card_after(repos, repo, changes)
    new_commits = {change: await commits_added(repos, repo, change) for change in changes if _adds_commits(change)}
    counts = await commit_counts.count_commits(repos, repo, changes) if added is None else {}
    now = repos.clock()

    async def unit(tx: Tx) -> MoveResult:
        if charge is not None:
            # The user is locked before the repo, as in all transactions.
            await lock_account_by_id(tx, charge.user_id)
        moves = await move_refs_in(tx, repos, repo, changes, card, now, counts, added, by_guest=charge is not None)
        if atomic and moves.stale:
            raise RefConflict(moves.stale)
        if charge is not None:
            await assign_to_pull_request(tx, repo.id, charge.num, charge, now)
        for change in moves.moved:
            if change in new_commits and (num := pull_request_of(change.ref)):
                await entry_store.add_commits(tx, repo.id, num, user_id, new_commits[change], now)
                await discussion_store.touch(tx, repo.id, num, now)
        return moves

    failpoint.hit("refs-before-move")
    write = repos.db.write_long if charge is not None and charge.needs_long_transaction else repos.db.write
    moves = await write(unit)
    failpoint.hit("refs-after-move")
    return moves


async def move_refs_in(
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
) -> MoveResult:
    """Move refs within a larger transaction. `card` is that of the new head, if the head is among the changes; `counts`
    has the number of commits reachable from the new ids (`commit_counts`).
    """
    # A guest's change does not move a repo to the top of lists (attack O72).
    seq = await store.next_seq_of_refs(tx, repo.id, None if by_guest else now)
    if seq is None:
        raise NotFound(REPO_GONE, code="RepoNotFound")
    moved: list[RefChange] = []
    stale: list[RefChange] = []
    names = await _names(tx, repo, changes)
    for change in changes:
        allowed = change.old_sha is not None or names.conflicting_ref(change.ref) is None
        if change.new_sha is not None and is_pull_request(change.ref):
            # The pull request may have been closed or removed since the push was checked (attack O72).
            allowed = allowed and await discussion_store.accepts_commits(tx, repo.id, change.ref)
        commits = counts.get(change.new_sha or "")
        did_move = allowed and await store.move_ref(
            tx, repo.id, change.ref, change.old_sha, change.new_sha, commits=commits, added=added
        )
        (moved if did_move else stale).append(change)
        if did_move:
            (names.discard if change.new_sha is None else names.add)(change.ref)
    if not moved:
        # Also rolls back the sequence number and the generation.
        raise RefConflict(stale)
    head = next((change for change in moved if change.ref == MAIN), None)
    if head is not None and card is not None:
        after = await store.set_head(tx, repo.id, head.new_sha, card) or repo
        if repo.repo_type is RepoType.SPACE:
            await repos.on_space_content(tx, repo.id, card.data_json, now)
        await search_store.put(tx, document_of(after, card))
    else:
        after = await store.by_id(tx, repo.id) or repo
    payload = {"updatedRefs": moved}
    await outbox.record(tx, Kind.REPO_CONTENT, after.snapshot, seq, payload, repos.base_url, now, by_guest=by_guest)
    return MoveResult(tuple(moved), tuple(stale))


async def _names(tx: Tx, repo: Repo, changes: Sequence[RefChange]) -> RefNames:
    """The existing names, read only if a ref is new: an existing ref has no conflicts."""
    creates_refs = any(change.old_sha is None for change in changes)
    return RefNames(name for name, _ in await store.refs(tx, repo.id)) if creates_refs else RefNames(())


def _adds_commits(change: RefChange) -> bool:
    return is_pull_request(change.ref) and change.new_sha is not None


async def card_after(repos: Repos, repo: Repo, changes: Sequence[RefChange]) -> Card | None:
    head = next((change for change in changes if change.ref == MAIN), None)
    return await card_at(repos.folders.of(repo.id), head.new_sha, repo.type) if head else None
