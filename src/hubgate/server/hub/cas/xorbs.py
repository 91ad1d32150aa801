"""Uploads of xorbs: received into a temporary file, verified, stored, and recorded for the repo they were sent to.

A xorb is recorded only after every hash in it was verified. It is shared only with those who may refer to it anyway;
for others it is stored again. So neither the answer nor its duration, and nothing in a later download, reveals that
somebody else has stored the same content.
"""

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from hubgate.server import failpoint
from hubgate.server.accounts.account_locks import lock_account_by_id
from hubgate.server.errors import Forbidden, NotFound
from hubgate.server.hub.cas import store
from hubgate.server.hub.cas.model import Sender, StoredXorb, new_xorb_id
from hubgate.server.hub.cas.permissions import usable_xorbs
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.guests.charges import WRITERS_ONLY, charge_files
from hubgate.server.hub.quotas.quotas import check_xorb
from hubgate.server.hub.repos.transactions import lock_repo
from hubgate.server.hub.xet.hashes import is_listed_for_lookup, parse_hash
from hubgate.server.hub.xet.xorb import XorbVerifier
from hubgate.server.hub.xet.xorb_table import XorbTable
from hubgate.server.objects.model import StoreUnavailable
from hubgate.server.storage.database import Tx

# Parts are collected up to this size: verification of each part changes the thread twice.
_PART = 1024 * 1024


class ReceivedXorb(Struct, frozen=True):
    """A verified xorb in a temporary file, without a footer."""

    hash: str
    table: XorbTable
    file: Path
    # SHA-256 of the file, hex.
    digest: str

    @property
    def size(self) -> int:
        return self.table.stored_size


def charged_as(xorb_id: str) -> str:
    """The id under which a guest is charged for a xorb, until a shard refers to it."""
    return f"xorb:{xorb_id}"


async def receive_xorb(parts: AsyncIterator[bytes], expected: str, temporary: Path) -> ReceivedXorb:
    """Receive a xorb into a temporary file, which the caller deletes. Raises `InvalidXet` if a hash is wrong."""
    verifier, pending = XorbVerifier(), bytearray()
    with temporary.open("wb") as file:

        def add(part: bytes) -> None:
            verifier.feed(part)
            file.write(part)

        async for part in parts:
            pending += part
            if len(pending) >= _PART:
                await in_thread(add, bytes(pending))
                pending.clear()
        await in_thread(add, bytes(pending))
        table = await in_thread(verifier.finish, parse_hash(expected))
    # A footer is not stored: everything it says is in the table.
    digest = await in_thread(_finish, temporary, table.stored_size)
    return ReceivedXorb(expected, table, temporary, digest)


def _finish(temporary: Path, size: int) -> str:
    """Cut the footer off, sync the file and return its SHA-256."""
    digest = hashlib.sha256()
    with temporary.open("rb+") as file:
        file.truncate(size)
        while part := file.read(_PART):
            digest.update(part)
        os.fsync(file.fileno())
    return digest.hexdigest()


async def add_xorb(repos: Repos, sender: Sender, received: ReceivedXorb) -> bool:
    """Store a verified xorb and record that it was sent; whether it is new to the sender."""
    existing = (await usable_xorbs(repos, sender, [received.hash])).get(received.hash)
    is_known = existing is not None and existing.includes(0, len(received.table))
    if existing is not None and is_known and await _touch(repos, sender, existing.xorb):
        return False
    now, stored = repos.clock(), StoredXorb(new_xorb_id(), received.hash, received.size)
    lookups = [value for value, _ in received.table if is_listed_for_lookup(value)]
    new = store.NewXorb(stored, received.table.size, received.table.to_bytes(), lookups)
    await repos.objects.put(stored.key, received.file, received.digest)
    failpoint.hit("xorb-stored")

    async def unit(tx: Tx) -> None:
        await _lock_and_charge(tx, repos, sender, stored)
        await store.add(tx, new, now)
        await _record(tx, sender, stored, now)

    try:
        await repos.db.write_long(unit)
    except (Forbidden, NotFound):
        # Not accepted. After any other error the xorb may have been recorded. Objects without a record are deleted by
        # the sweep.
        with suppress(StoreUnavailable):
            await repos.objects.delete(stored.key)
        raise
    failpoint.hit("xorb-recorded")
    return True


async def _touch(repos: Repos, sender: Sender, xorb: StoredXorb) -> bool:
    """Record that a stored xorb was sent again, which protects it from deletion for a day; False if it was deleted."""
    now = repos.clock()

    async def unit(tx: Tx) -> bool:
        await _lock_and_charge(tx, repos, sender, xorb)
        if not await store.lock(tx, xorb.id):
            return False
        await _record(tx, sender, xorb, now)
        return True

    return await repos.db.write_long(unit)


async def _lock_and_charge(tx: Tx, repos: Repos, sender: Sender, xorb: StoredXorb) -> None:
    """Check the owner's quota, or charge a guest. Locks the account, then the repo, before the xorb."""
    repo_id = sender.repo.id
    if not sender.is_guest:
        await check_xorb(tx, repos, repo_id, xorb.id, xorb.size)
        await lock_repo(tx, repo_id)
        return
    if repos.guest_pull_requests == 0:
        raise Forbidden(WRITERS_ONLY)
    await lock_account_by_id(tx, sender.user_id)
    await lock_repo(tx, repo_id)
    await charge_files(tx, repos, sender.user_id, repo_id, {charged_as(xorb.id): xorb.size}, repos.clock())


async def _record(tx: Tx, sender: Sender, xorb: StoredXorb, now: int) -> None:
    await store.record_upload(tx, sender.repo.id, xorb.id, sender.user_id, by_guest=sender.is_guest, now=now)
