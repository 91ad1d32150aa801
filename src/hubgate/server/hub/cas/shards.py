"""Uploads of shards: the files of a shard are verified against stored xorbs, then registered together.

A file is registered only after its parts, its Xet hash and its SHA-256 were verified, so a commit may refer to it. All
files of a shard become visible in one transaction, or none does.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from msgspec import Struct

from hubgate.server import failpoint
from hubgate.server.access.visibility import visible_repos
from hubgate.server.accounts.account_locks import lock_account_by_id
from hubgate.server.hub.cas import files_store, store
from hubgate.server.hub.cas.files_store import ChunkedFile
from hubgate.server.hub.cas.model import Sender
from hubgate.server.hub.cas.permissions import MAX_REPOS_CHECKED, UsableXorb, may_read, usable_xorbs
from hubgate.server.hub.cas.ranges import Range, pack
from hubgate.server.hub.cas.reading import content
from hubgate.server.hub.cas.tables import GivenXorbs, TableCache, Xorbs
from hubgate.server.hub.cas.xorbs import charged_as
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_long_thread, in_thread
from hubgate.server.hub.guests import store as guest_store
from hubgate.server.hub.guests.charges import charge_files
from hubgate.server.hub.lfs import store as lfs_store
from hubgate.server.hub.quotas.quotas import check_references
from hubgate.server.hub.repos.transactions import lock_repo
from hubgate.server.hub.xet.file_check import CheckedFile, FileCheck
from hubgate.server.hub.xet.hashes import hash_text
from hubgate.server.hub.xet.invalid import InvalidXet
from hubgate.server.hub.xet.shard import Shard, ShardFile, Term, parse_upload
from hubgate.server.hub.xet.xorb_table import XorbTable
from hubgate.server.objects.model import ObjectMissing
from hubgate.server.storage.database import ConstraintViolated, Tx

# Chunks that are checked before other threads get a turn.
_CHUNKS_PER_STEP = 50_000
# A term, its verification hash, and the table of its xorb.
_Checked = tuple[Term, bytes, XorbTable]
_XORB_DELETED = "A xorb that the shard refers to was deleted in the meantime. Upload the files again."


@dataclass
class Progress:
    """How many files of a shard are verified."""

    total: int = 0
    verified: int = 0


class VerifiedFile(Struct, frozen=True):
    """A file to register: packed ranges of chunks by the ids of its xorbs, and its first chunk with its xorb, which
    clients look up.
    """

    file: ChunkedFile
    xorbs: Mapping[str, bytes]
    first_chunk: tuple[bytes, str] | None


async def register_shard(repos: Repos, sender: Sender, data: bytes, progress: Progress) -> None:
    """Verify and register the files of a shard. Raises `InvalidXet` if anything is wrong with it."""
    shard = await in_long_thread(parse_upload, data)
    files, hashes = await in_long_thread(_named, repos, shard)
    progress.total = len(files)
    usable = await usable_xorbs(repos, sender, hashes)
    if missing := hashes - usable.keys():
        raise _not_uploaded(min(missing))
    given = GivenXorbs({value: found.xorb for value, found in usable.items()})
    verified, tables = list[VerifiedFile](), TableCache(repos, given)
    async with repos.verifications.acquire(sender.user_id, sender.repo.id):
        try:
            for file in files:
                verified.append(await _verify(repos, sender, file, usable, tables))
                progress.verified += 1
        except ObjectMissing as error:
            raise InvalidXet(_XORB_DELETED) from error
    failpoint.hit("shard-verified")
    await _register(repos, sender, verified)
    failpoint.hit("shard-registered")


def _named(repos: Repos, shard: Shard) -> tuple[list[ShardFile], set[str]]:
    """The files of a shard, and all xorbs that it names. The work that they cause is limited: a shard can refer to the
    same chunks any number of times.
    """
    files, xorbs, chunks, size = list[ShardFile](), set[bytes](), 0, 0
    for file in shard.files():
        files.append(file)
        for term in file.terms():
            xorbs.add(term.xorb)
            chunks += term.end - term.start
            size += term.size
        if len(files) > repos.limits.shard_files or chunks > repos.limits.shard_chunks:
            raise InvalidXet("The shard has too many files or chunks. Send several shards.")
        if size > repos.limits.shard_bytes:
            raise InvalidXet(f"The files of the shard have more than {repos.limits.shard_bytes:,} bytes.")
    xorbs.update(xorb.hash for xorb in shard.xorbs())
    if len(xorbs) > repos.limits.shard_xorbs:
        raise InvalidXet("The shard names too many xorbs. Send several shards.")
    return files, {hash_text(xorb) for xorb in xorbs}


async def _verify(
    repos: Repos, sender: Sender, file: ShardFile, usable: Mapping[str, UsableXorb], tables: TableCache
) -> VerifiedFile:
    check, batch, chunks = FileCheck(file), list[_Checked](), 0
    ranges = dict[str, list[Range]]()
    first: tuple[bytes, str] | None = None
    for term, claimed in check.terms():
        if not usable[hash_text(term.xorb)].includes(term.start, term.end):
            raise _not_uploaded(hash_text(term.xorb))
        xorb, table = await tables.get(term.xorb)
        if first is None and table.includes(term.start, term.end):
            first = table.hash_of(term.start), xorb.id
        ranges.setdefault(xorb.id, []).append((term.start, term.end))
        batch.append((term, claimed, table))
        chunks += term.end - term.start
        if chunks > _CHUNKS_PER_STEP:
            await in_long_thread(_check, check, batch)
            batch, chunks = [], 0
    await in_long_thread(_check, check, batch)
    checked = check.finish()
    file_hash = hash_text(checked.hash)
    oid = await _known_sha256(repos, sender, file_hash) or await _sha256(repos, tables.xorbs, checked)
    if oid != checked.sha256:
        raise InvalidXet(f"The file {file_hash} has the SHA-256 {oid}, not {checked.sha256}.")
    chunked = ChunkedFile(sender.repo.id, oid, checked.size, file_hash, checked.terms)
    return VerifiedFile(chunked, {xorb_id: pack(found) for xorb_id, found in sorted(ranges.items())}, first)


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


async def _register(repos: Repos, sender: Sender, files: Sequence[VerifiedFile]) -> None:
    now, repo_id, by_guest = repos.clock(), sender.repo.id, sender.is_guest
    xorbs = {xorb for file in files for xorb in file.xorbs}

    async def unit(tx: Tx) -> None:
        if by_guest:
            await lock_account_by_id(tx, sender.user_id)
            await lock_repo(tx, repo_id)
            sizes = {item.file.oid: item.file.size for item in files}
            links = await guest_store.links_among(tx, repo_id, sizes)
            sizes = {oid: size for oid, size in sizes.items() if oid not in links.of_owner}
            await guest_store.drop_pending(tx, sender.user_id, repo_id, [charged_as(xorb) for xorb in xorbs])
            await charge_files(tx, repos, sender.user_id, repo_id, sizes, now)
        else:
            await check_references(tx, repos, repo_id, xorbs)
            await lock_repo(tx, repo_id)
        for item in files:
            await _add(tx, item, by_guest=by_guest, now=now)
        first_chunks = [item.first_chunk for item in files if item.first_chunk is not None]
        await store.add_lookups(tx, list(dict.fromkeys(first_chunks)))

    try:
        await repos.db.write_long(unit)
    except ConstraintViolated:
        raise InvalidXet(_XORB_DELETED) from None


async def _add(tx: Tx, item: VerifiedFile, *, by_guest: bool, now: int) -> None:
    file = item.file
    was_linked = await files_store.is_linked(tx, file.repo_id, file.oid)
    await lfs_store.link(tx, file.repo_id, file.oid, file.size, None, now, by_guest=by_guest)
    if was_linked:
        # The repo has the file, as chunks or as one object, which was verified too.
        return
    await files_store.add(tx, file, now)
    if await files_store.refer(tx, file, item.xorbs) != len(item.xorbs):
        raise InvalidXet(_XORB_DELETED)
