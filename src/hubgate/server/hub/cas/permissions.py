"""Which chunks a user may refer to: those in xorbs the user sent to the repo, and those in files the user may read.

The answers are the same for chunks that are not stored and for those that the user may not read, so hashes that are
guessed or copied from somewhere reveal nothing and grant nothing.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.access.visibility import visible_repos
from hubgate.server.hub.cas import store
from hubgate.server.hub.cas.model import Sender, StoredXorb
from hubgate.server.hub.cas.ranges import RANGE_SIZE, Range, covers, merged, merged_packed, unpack
from hubgate.server.hub.context import Repos
from hubgate.server.hub.gating import access_requests
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import Repo

# Repos that are checked for a xorb that many have, and files of each. A user who may read only others sends the chunks
# again.
MAX_REPOS_CHECKED = 50
MAX_FILES_CHECKED = 200
# Packed ranges of these files that are read: a file can have every other chunk of a xorb.
MAX_BYTES_CHECKED = 20_000 * RANGE_SIZE


class UsableXorb(Struct, frozen=True):
    """A xorb that a user may refer to, and which of its chunks; None for all."""

    xorb: StoredXorb
    ranges: Sequence[Range] | None = None

    def includes(self, start: int, end: int) -> bool:
        return self.ranges is None or covers(self.ranges, start, end)

    @property
    def chunk_count(self) -> float:
        return math.inf if self.ranges is None else sum(end - start for start, end in self.ranges)


class ReadableXorb(Struct, frozen=True):
    """A xorb, which of its chunks are in files that a user may read, and the repo of one of these files."""

    xorb: StoredXorb
    ranges: Sequence[Range]
    repo: Repo


async def usable_xorbs(repos: Repos, sender: Sender, hashes: Collection[str]) -> dict[str, UsableXorb]:
    """By hash, those xorbs that a shard of this sender may name, each with most of its chunks. The search ends soon
    after the first that the sender may not name, in the order of their hashes: a shard can name a million.
    """
    found = await _find_usable(repos, sender, hashes)
    return {value: max(stored, key=lambda each: each.chunk_count) for value, stored in found.items()}


async def find_unusable(repos: Repos, sender: Sender, used: Mapping[str, Mapping[str, bytes]]) -> str | None:
    """The hash of a xorb that the sender may not refer to (any more); None if all may be used. `used`: the packed
    ranges of chunks, by the hashes and ids of their xorbs.
    """
    found = await _find_usable(repos, sender, used)
    for value, by_id in used.items():
        usable = {each.xorb.id: each for each in found.get(value, ())}
        for xorb_id, packed in by_id.items():
            if xorb_id not in usable or not await in_thread(_includes_all, usable[xorb_id], packed):
                return value
    return None


def _includes_all(usable: UsableXorb, packed: bytes) -> bool:
    return all(usable.includes(start, end) for start, end in unpack(packed))


async def _find_usable(repos: Repos, sender: Sender, hashes: Collection[str]) -> dict[str, list[UsableXorb]]:
    """By hash, the xorbs that the sender may refer to. The same xorb may be stored several times, for different users.
    Ends like `usable_xorbs`.
    """
    # What writers sent, but registered in no file, is nobody else's: guests cannot even find out that it was sent.
    by_writers = sender.reads_repo and not sender.is_guest
    sent = await repos.db.read_long(
        lambda tx: store.sent_among(tx, sender.repo.id, sender.user_id, hashes, by_writers=by_writers)
    )
    found: dict[str, list[UsableXorb]] = {}
    for xorb in sent:
        found.setdefault(xorb.hash, []).append(UsableXorb(xorb))
    others, readers = sorted(set(hashes) - found.keys()), _Readers(repos, sender)
    for start in range(0, len(others), store.MAX_HASHES):
        step = others[start : start + store.MAX_HASHES]
        for usable in await readers.find(step):
            found.setdefault(usable.xorb.hash, []).append(usable)
        if not found.keys() >= set(step):
            break
    return found


@dataclass
class _Readers:
    """Finds xorbs in files that a sender may read. Asks once for each repo."""

    repos: Repos
    sender: Sender
    _may_read: dict[str, bool] = field(default_factory=dict)

    async def find(self, hashes: Sequence[str]) -> list[UsableXorb]:
        visible, first = visible_repos(self.sender.identity), self.sender.repo.id
        places = await self.repos.db.read_long(
            lambda tx: store.places_of(tx, hashes, visible, first, MAX_REPOS_CHECKED)
        )
        readable = [(xorb, repo_id) for xorb, repo_id in places if await self._reads(repo_id)]
        pairs = [(repo_id, xorb.id) for xorb, repo_id in readable]
        packed = await self.repos.db.read_long(
            lambda tx: store.ranges_among(tx, pairs, MAX_FILES_CHECKED, MAX_BYTES_CHECKED)
        )
        by_id = {xorb.id: xorb for xorb, _ in readable}
        ranges = await in_thread(lambda: {xorb_id: merged_packed(found) for xorb_id, found in packed.items()})
        return [UsableXorb(by_id[xorb_id], found) for xorb_id, found in ranges.items()]

    async def _reads(self, repo_id: str) -> bool:
        if repo_id not in self._may_read:
            repo = await repo_store.by_id(self.repos.db, repo_id)
            self._may_read[repo_id] = repo is not None and await may_read(self.repos, self.sender.identity, repo)
        return self._may_read[repo_id]


async def find_readable(repos: Repos, identity: Identity, chunk: bytes, first: str) -> list[ReadableXorb]:
    """The stored xorbs with this chunk, and which of their chunks are in files that the caller may read; the repo
    `first` is preferred. The chunk that was looked for may not be among these.
    """
    visible = visible_repos(identity)
    candidates = await repos.db.read_long(lambda tx: store.repos_with(tx, chunk, visible, first, MAX_REPOS_CHECKED))
    found: dict[str, ReadableXorb] = {}
    for xorb, repo in candidates:
        if await may_read(repos, identity, repo):
            known = found.get(xorb.id)
            ranges = await ranges_in(repos, repo, xorb)
            if known is None:
                found[xorb.id] = ReadableXorb(xorb, ranges, repo)
            else:
                found[xorb.id] = ReadableXorb(xorb, merged([*known.ranges, *ranges]), known.repo)
    return list(found.values())


async def ranges_in(repos: Repos, repo: Repo, xorb: StoredXorb) -> list[Range]:
    """The chunks of a xorb that are in files of a repo."""
    places = [(repo.id, xorb.id)]
    found = await repos.db.read_long(lambda tx: store.ranges_among(tx, places, MAX_FILES_CHECKED, MAX_BYTES_CHECKED))
    return await in_thread(merged_packed, found.get(xorb.id, ()))


async def may_read(repos: Repos, identity: Identity, repo: Repo) -> bool:
    """Whether the caller may read the files of a repo, which may be gated."""
    repo = await access_requests.with_access(repos, repo, identity.user_id)
    return decide(identity, Action.REPO_READ_CONTENT, repo.as_resource()).allowed
