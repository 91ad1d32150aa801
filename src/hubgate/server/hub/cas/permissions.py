"""Which chunks a user may refer to: those in xorbs the user sent to the repo, and those in files the user may read.

The answers are the same for chunks that are not stored and for those that the user may not read, so hashes that are
guessed or copied from somewhere reveal nothing and grant nothing.
"""

from collections.abc import Collection, Sequence

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.access.visibility import visible_repos
from hubgate.server.hub.cas import store
from hubgate.server.hub.cas.model import Sender, StoredXorb
from hubgate.server.hub.cas.ranges import Range, covers, merged, unpack
from hubgate.server.hub.context import Repos
from hubgate.server.hub.gating import access_requests
from hubgate.server.hub.repos.model import Repo

# Repos that are checked for a xorb that many have, and files of each. A user who may read only others sends the chunks
# again.
MAX_REPOS_CHECKED = 50
MAX_FILES_CHECKED = 200


class UsableXorb(Struct, frozen=True):
    """A xorb that a user may refer to, and which of its chunks; None for all."""

    xorb: StoredXorb
    ranges: Sequence[Range] | None = None

    def includes(self, start: int, end: int) -> bool:
        return self.ranges is None or covers(self.ranges, start, end)


class ReadableXorb(Struct, frozen=True):
    """A xorb, which of its chunks are in files that a user may read, and the repo of one of these files."""

    xorb: StoredXorb
    ranges: Sequence[Range]
    repo: Repo


async def usable_xorbs(repos: Repos, sender: Sender, hashes: Collection[str]) -> dict[str, UsableXorb]:
    """By hash, those xorbs that a shard of this sender may name. The search ends with the first that the sender may not
    name, in the order of their hashes: a shard can name a million.
    """
    by_writers = sender.reads_repo
    sent = await repos.db.read_long(
        lambda tx: store.sent_among(tx, sender.repo.id, sender.user_id, hashes, by_writers=by_writers)
    )
    found = {value: UsableXorb(xorb) for value, xorb in sent.items()}
    for value in sorted(set(hashes) - found.keys()):
        readable = await find_readable(repos, sender.identity, value, sender.repo.id)
        if not readable:
            break
        # The xorb may be stored several times, for different users.
        best = max(readable, key=lambda each: sum(end - start for start, end in each.ranges))
        found[value] = UsableXorb(best.xorb, best.ranges)
    return found


async def find_readable(repos: Repos, identity: Identity, value: str | bytes, first: str) -> list[ReadableXorb]:
    """The stored xorbs with this hash, or with this chunk, and which of their chunks are in files that the caller may
    read; the repo `first` is preferred. The chunk that was looked for may not be among these.
    """
    visible = visible_repos(identity)
    candidates = await repos.db.read_long(lambda tx: store.repos_with(tx, value, visible, first, MAX_REPOS_CHECKED))
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
    found = await repos.db.read_long(lambda tx: store.ranges_in(tx, repo.id, xorb.id, MAX_FILES_CHECKED))
    return merged(item for packed in found for item in unpack(packed))


async def may_read(repos: Repos, identity: Identity, repo: Repo) -> bool:
    """Whether the caller may read the files of a repo, which may be gated."""
    repo = await access_requests.with_access(repos, repo, identity.user_id)
    return decide(identity, Action.REPO_READ_CONTENT, repo.as_resource()).allowed
