"""Uploads of shards: the files of a shard are verified against stored xorbs, then registered.

A file is registered only after its parts, its Xet hash and its SHA-256 were verified, so a commit may refer to it. No
file of a shard is registered before all are verified. Many files are registered in several transactions: if one fails,
the client sends the shard again.
"""

import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from msgspec import Struct

from hubgate.server import failpoint
from hubgate.server.access.visibility import visible_repos
from hubgate.server.accounts.account_locks import lock_account_by_id
from hubgate.server.hub.cas import files_store, store
from hubgate.server.hub.cas.files_store import ChunkedFile
from hubgate.server.hub.cas.model import Sender
from hubgate.server.hub.cas.permissions import (
    MAX_BYTES_CHECKED,
    MAX_REPOS_CHECKED,
    UsableXorb,
    find_unusable,
    may_read,
    usable_xorbs,
)
from hubgate.server.hub.cas.ranges import Range, merged_packed, pack
from hubgate.server.hub.cas.reading import content
from hubgate.server.hub.cas.tables import GivenXorbs, TableCache, Xorbs
from hubgate.server.hub.cas.xorbs import charged_as
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_long_thread, in_thread
from hubgate.server.hub.guests import store as guest_store
from hubgate.server.hub.guests.charges import charge_files, charge_of, hidden_files, storage_exceeded
from hubgate.server.hub.lfs import store as lfs_store
from hubgate.server.hub.quotas.quotas import check_use, lock_limited_owner
from hubgate.server.hub.repos.transactions import lock_repo
from hubgate.server.hub.xet.file_check import CheckedFile, FileCheck
from hubgate.server.hub.xet.hashes import hash_text
from hubgate.server.hub.xet.invalid import InvalidXet
from hubgate.server.hub.xet.shard import Shard, ShardFile, Term, parse_upload
from hubgate.server.hub.xet.shard_format import RECORD_SIZE
from hubgate.server.hub.xet.xorb_table import MAX_CHUNKS, XorbTable
from hubgate.server.objects.model import ObjectMissing
from hubgate.server.storage.database import ConstraintViolated, Tx

# Chunks that are checked before other threads get a turn.
_CHUNKS_PER_STEP = 50_000
# How many bytes a xorb may have as stored for each byte of content, to be charged as the content of files: chunks of a
# byte, or compressed badly on purpose, have more.
_MOST_STORED = 2
# Terms that are read on the event loop before other requests get a turn.
_TERMS_PER_STEP = 2_000
# A term, its verification hash, and the table of its xorb.
_Checked = tuple[Term, bytes, XorbTable]
_TOO_MANY_XORBS = "The shard names too many xorbs. Send several shards."
_XORB_DELETED = "A xorb that the shard refers to was deleted in the meantime. Upload the files again."


@dataclass
class Progress:
    """How many files of a shard are verified."""

    total: int = 0
    verified: int = 0


class VerifiedFile(Struct, frozen=True):
    """A file to register: packed ranges of chunks by the ids of its xorbs, the number of chunks of each of these xorbs
    unless it is much larger as stored, and its first chunk with its xorb, which clients look up.
    """

    file: ChunkedFile
    xorbs: Mapping[str, bytes]
    chunk_counts: Mapping[str, int]
    first_chunk: tuple[bytes, str] | None


Verified = Sequence[VerifiedFile]


async def register_shard(
    repos: Repos, sender: Sender, data: bytes, progress: Progress, reload_sender: Callable[[], Awaitable[Sender]]
) -> None:
    """Verify and register the files of a shard. Raises `InvalidXet` if anything is wrong with it. The sender's
    permission is checked again before files are registered: verification may take hours (attack O44).
    """
    shard = await in_long_thread(parse_upload, data)
    files, hashes = await in_long_thread(_named, repos, shard)
    progress.total = len(files)
    if sender.is_guest:
        await _check_guest_sizes(repos, sender, files)
    async with repos.verifications.acquire(sender.user_id, sender.repo.id):
        usable = await usable_xorbs(repos, sender, hashes)
        if missing := hashes - usable.keys():
            raise _not_uploaded(min(missing))
        given = GivenXorbs({value: found.xorb for value, found in usable.items()})
        verified, tables = list[VerifiedFile](), TableCache(repos, given)
        try:
            for file in files:
                verified.append(await _verify(repos, sender, file, usable, tables))
                progress.verified += 1
        except ObjectMissing as error:
            raise InvalidXet(_XORB_DELETED) from error
        failpoint.hit("shard-verified")
        sender = await reload_sender()
        await _check_again(repos, sender, usable, verified)
    await _register(repos, sender, verified)
    failpoint.hit("shard-registered")


def _named(repos: Repos, shard: Shard) -> tuple[list[ShardFile], set[str]]:
    """The files of a shard, and all xorbs that it names. The work that they cause is limited: a shard can refer to the
    same chunks any number of times.
    """
    files, xorbs, chunks, size = list[ShardFile](), set[bytes](), 0, 0
    for file in shard.files():
        files.append(file)
        if len(file.entries) > repos.limits.file_terms * RECORD_SIZE:
            raise InvalidXet(f"A file of the shard has more than {repos.limits.file_terms:,} terms.")
        for term in file.terms():
            xorbs.add(term.xorb)
            chunks += term.end - term.start
            size += term.size
        if len(xorbs) > repos.limits.shard_xorbs:
            raise InvalidXet(_TOO_MANY_XORBS)
        if len(files) > repos.limits.shard_files or chunks > repos.limits.shard_chunks:
            raise InvalidXet("The shard has too many files or chunks. Send several shards.")
        if size > repos.limits.shard_bytes:
            raise InvalidXet(f"The files of the shard have more than {repos.limits.shard_bytes:,} bytes.")
    for xorb in shard.xorbs():
        xorbs.add(xorb.hash)
        if len(xorbs) > repos.limits.shard_xorbs:
            raise InvalidXet(_TOO_MANY_XORBS)
    return files, {hash_text(xorb) for xorb in xorbs}


async def _check_guest_sizes(repos: Repos, sender: Sender, files: Sequence[ShardFile]) -> None:
    """Reject files of a guest that cannot be charged, before they are read: a few megabytes of chunks can be terabytes
    of files.
    """
    sizes = await in_long_thread(lambda: {file.sha256 or "": sum(term.size for term in file.terms()) for file in files})
    hidden = await hidden_files(repos, sender.repo, charge_of(sender.repo, sender.identity), sizes)
    found = [oid for oid in sizes if oid not in hidden]
    known = await repos.db.read_long(lambda tx: lfs_store.sizes_of(tx, sender.repo.id, found))
    added = sum(size for oid, size in sizes.items() if known.get(oid) != size)
    if added > repos.guest_bytes:
        charged = await repos.db.read_long(lambda tx: guest_store.bytes_charged(tx, sender.user_id, sender.repo.id))
        raise storage_exceeded(repos, charged, f"{added:,}")


async def _verify(
    repos: Repos, sender: Sender, file: ShardFile, usable: Mapping[str, UsableXorb], tables: TableCache
) -> VerifiedFile:
    check, batch, chunks = FileCheck(file), list[_Checked](), 0
    ranges, counts = dict[str, list[Range]](), dict[str, int]()
    first: tuple[bytes, str] | None = None
    for term, claimed in check.terms():
        if not usable[hash_text(term.xorb)].includes(term.start, term.end):
            raise _not_uploaded(hash_text(term.xorb))
        xorb, table = await tables.get(term.xorb)
        if first is None and table.includes(term.start, term.end):
            first = table.hash_of(term.start), xorb.id
        ranges.setdefault(xorb.id, []).append((term.start, term.end))
        if table.stored_size <= _MOST_STORED * table.size:
            counts[xorb.id] = len(table)
        batch.append((term, claimed, table))
        chunks += term.end - term.start
        if chunks > _CHUNKS_PER_STEP or len(batch) > _TERMS_PER_STEP:
            await in_long_thread(_check, check, batch)
            batch, chunks = [], 0
    await in_long_thread(_check, check, batch)
    checked = check.finish()
    file_hash = hash_text(checked.hash)
    oid = await _known_sha256(repos, sender, file_hash) or await _sha256(repos, tables.xorbs, checked)
    if oid != checked.sha256:
        raise InvalidXet(f"The file {file_hash} has the SHA-256 {oid}, not {checked.sha256}.")
    chunked = ChunkedFile(sender.repo.id, oid, checked.size, file_hash, checked.terms)
    packed = await in_thread(lambda: {xorb_id: pack(found) for xorb_id, found in sorted(ranges.items())})
    return VerifiedFile(chunked, packed, counts, first)


def _not_uploaded(xorb: str) -> InvalidXet:
    """The same error for chunks that are not stored and for those that the sender may not read."""
    return InvalidXet(f"The xorb {xorb} was not uploaded to this repo.")


def _check(check: FileCheck, terms: Sequence[_Checked]) -> None:
    for term, claimed, table in terms:
        check.add(term, claimed, table)


async def _known_sha256(repos: Repos, sender: Sender, file_hash: str) -> str | None:
    """The SHA-256 of a file with the same chunks that the sender may read. Other files are not used: a faster answer
    would reveal that they exist.
    """
    visible = visible_repos(sender.identity)
    found = await repos.db.read_long(
        lambda tx: files_store.repos_with_file(tx, file_hash, visible, sender.repo.id, MAX_REPOS_CHECKED)
    )
    for oid, repo in found:
        if await may_read(repos, sender.identity, repo):
            return oid
    return None


async def _sha256(repos: Repos, xorbs: Xorbs, checked: CheckedFile) -> str:
    digest = hashlib.sha256()
    async with aclosing(content(repos, xorbs, checked.terms, 0, checked.size)) as parts:
        async for part in parts:
            await in_thread(digest.update, part)
    return digest.hexdigest()


async def _check_again(repos: Repos, sender: Sender, usable: Mapping[str, UsableXorb], files: Verified) -> None:
    """Reject chunks of others that the sender may no longer read: verification may take hours."""
    names = {found.xorb.id: value for value, found in usable.items()}
    used: dict[str, dict[str, list[bytes]]] = {}
    for file in files:
        for xorb_id, packed in file.xorbs.items():
            used.setdefault(names[xorb_id], {}).setdefault(xorb_id, []).append(packed)
    ranges = {value: {xorb_id: b"".join(found) for xorb_id, found in by_id.items()} for value, by_id in used.items()}
    if (refused := await find_unusable(repos, sender, ranges)) is not None:
        raise _not_uploaded(refused)


async def _register(repos: Repos, sender: Sender, files: Verified) -> None:
    """Register files that were verified, in transactions of limited length."""
    if sender.is_guest:
        await repos.db.write_long(lambda tx: _charge_guest(tx, repos, sender, files))
    try:
        for part in _parts(files, repos.limits.registered_files):
            await repos.db.write_long(partial(_register_part, repos=repos, sender=sender, files=part))
            failpoint.hit("shard-part-registered")
    except ConstraintViolated:
        raise InvalidXet(_XORB_DELETED) from None


def _parts(files: Verified, limit: int) -> Iterator[Verified]:
    """The files in groups of up to `limit` references to xorbs, or of one file."""
    part, count = list[VerifiedFile](), 0
    for file in files:
        size = max(len(file.xorbs), 1)
        if part and count + size > limit:
            yield part
            part, count = [], 0
        part.append(file)
        count += size
    if part:
        yield part


async def _register_part(tx: Tx, repos: Repos, sender: Sender, files: Verified) -> None:
    now, repo_id, by_guest = repos.clock(), sender.repo.id, sender.is_guest
    by_oid = {item.file.oid: item for item in reversed(files)}
    owner = None
    if by_guest:
        await lock_account_by_id(tx, sender.user_id)
    else:
        owner = await lock_limited_owner(tx, repos, repo_id)
    await lock_repo(tx, repo_id)
    links = await guest_store.links_among(tx, repo_id, by_oid)
    new = {oid: item for oid, item in by_oid.items() if oid not in links.of_owner and oid not in links.of_guests}
    if not by_guest:
        # The repo has the other files, as chunks or as one object, which were verified too. Guests' become the owner's.
        xorbs = {xorb for item in new.values() for xorb in item.xorbs}
        await check_use(tx, repos, owner, repo_id, links.of_guests, xorbs)
        await guest_store.assign_to_owner(tx, repo_id, links.of_guests)
    sizes = {oid: item.file.size for oid, item in new.items()}
    added = await lfs_store.link_new(tx, repo_id, sizes, now, by_guest=by_guest)
    await files_store.add(tx, [new[oid].file for oid in added], now)
    ranges = {oid: new[oid].xorbs for oid in added}
    if await files_store.refer(tx, repo_id, ranges) != sum(map(len, ranges.values())):
        raise InvalidXet(_XORB_DELETED)
    if by_guest:
        await guest_store.set_received(tx, sender.user_id, repo_id, by_oid)
    first_chunks = [item.first_chunk for item in files if item.first_chunk is not None]
    await store.add_lookups(tx, list(dict.fromkeys(first_chunks)))


async def _charge_guest(tx: Tx, repos: Repos, sender: Sender, files: Verified) -> None:
    """Charge a guest for all files of a shard, instead of for the xorbs that they consist of. Files of the owner are
    not charged, unless that would reveal them to a guest who may not read the repo.
    """
    repo_id, user_id = sender.repo.id, sender.user_id
    await lock_account_by_id(tx, user_id)
    await lock_repo(tx, repo_id)
    sizes = {item.file.oid: item.file.size for item in files}
    if sender.reads_repo:
        links = await guest_store.links_among(tx, repo_id, sizes)
        sizes = {oid: size for oid, size in sizes.items() if oid not in links.of_owner}
    used = await _used_xorbs(tx, sender, [item for item in files if item.file.oid in sizes])
    await guest_store.drop_pending(tx, user_id, repo_id, used)
    await charge_files(tx, repos, user_id, repo_id, sizes, repos.clock())


async def _used_xorbs(tx: Tx, sender: Sender, files: Verified) -> list[str]:
    """The guest's charges for xorbs all of whose chunks are in these files, or in others of the repo. A xorb of which a
    file uses one chunk is stored as a whole, so it stays charged (attack O72). For a guest who may not read the repo,
    only the files of this shard count.
    """
    counts = {charged_as(xorb): (xorb, count) for file in files for xorb, count in file.chunk_counts.items()}
    charged = await guest_store.files_charged(tx, sender.user_id, sender.repo.id, counts)
    ranges: dict[str, list[bytes]] = {}
    for file in files:
        for xorb, packed in file.xorbs.items():
            ranges.setdefault(xorb, []).append(packed)
    places = [(sender.repo.id, counts[name][0]) for name in charged] if sender.reads_repo else []
    others = await store.all_ranges_among(tx, places, MAX_CHUNKS, MAX_BYTES_CHECKED)
    used = []
    for name in charged:
        xorb, count = counts[name]
        if merged_packed([*ranges[xorb], *others.get(xorb, ())]) == [(0, count)]:
            used.append(name)
    return used
