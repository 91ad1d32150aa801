"""Verifies the chains, for `hubgate doctor` and for the badge on the audit log page.

A chain is verified in sections, each read from one snapshot, so that memory stays bounded and neither sealing nor
retention has to pause.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec import Struct

from hubgate.server.audit import chain, store
from hubgate.server.audit.head import HeadAuthenticator
from hubgate.server.audit.model import Batch, Entry, EntryType, Head
from hubgate.server.audit.seal import BATCH_SIZE
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx

BATCHES_AT_ONCE = 200
ENTRIES_AT_ONCE = 4000
QUICK_CHECK_ENTRIES = 1000
MAX_FLAWS = 20


@dataclass
class Report:
    organizations: int = 0
    batches: int = 0
    entries: int = 0
    # Unsealed entries, and the time of the oldest.
    waiting: int = 0
    waiting_since: int | None = None
    # The first flaw of each organization, as a sentence that names the organization and the batch.
    flaws: list[str] = field(default_factory=list)


class _Section(Struct, frozen=True):
    """A verified section of a chain: valid up to batch `seq`, unless `flaw` is set."""

    seq: int
    hash: bytes
    flaw: str | None = None
    batches: int = 0
    entries: int = 0
    # Set at the end of the chain: the number of unsealed entries, and the time of the oldest.
    waiting: tuple[int, int | None] | None = None


async def verify(db: Database, secret: ServerSecret) -> Report:
    report, org_id = Report(), ""
    while (found := await store.next_organization(db, org_id)) is not None:
        org_id = found
        flaw = await _verify_organization(db, HeadAuthenticator(secret), org_id, report)
        if flaw is not None:
            report.flaws.append(f"{await store.organization_name(db, org_id) or org_id}: {flaw}.")
            if len(report.flaws) == MAX_FLAWS:
                break
    return report


async def _verify_organization(
    db: Database, authenticator: HeadAuthenticator, org_id: str, report: Report
) -> str | None:
    report.organizations += 1
    section = _Section(0, chain.FIRST_PREVIOUS_HASH)
    while section.waiting is None and section.flaw is None:
        section = await db.read_long(partial(_next_section, authenticator=authenticator, org_id=org_id, so_far=section))
        report.batches += section.batches
        report.entries += section.entries
    count, since = section.waiting or (0, None)
    report.waiting += count
    report.waiting_since = min(filter(None, (report.waiting_since, since)), default=None)
    if section.flaw is None and section.seq == 0 and not count:
        return "it has no log, not even an entry about its creation"
    return section.flaw


async def _next_section(tx: Tx, authenticator: HeadAuthenticator, org_id: str, so_far: _Section) -> _Section:
    """Verify the next section, against the current head."""
    head = await store.head(tx, org_id)
    batches = _limit_entries(await store.batches(tx, org_id, so_far.seq, BATCHES_AT_ONCE))
    if head is None:
        flaw = "the end of its chain is not recorded" if batches or so_far.seq else None
        return _Section(so_far.seq, so_far.hash, flaw, waiting=await store.waiting(tx, org_id))
    if flaw := _flaw_of_head(authenticator, head):
        return _Section(so_far.seq, so_far.hash, flaw)
    if head.broken is not None and so_far.seq < head.broken:
        return await _start_after(tx, org_id, head.broken)
    known = await _entries_of(tx, batches)
    seq, digest = so_far.seq, so_far.hash
    for batch in batches:
        if flaw := _flaw_of_batch(head, batch, seq, digest, known.get(batch.seq, [])):
            return _Section(seq, digest, flaw)
        seq, digest = batch.seq, batch.hash
    counts = len(batches), sum(map(len, known.values()))
    if batches:
        return _Section(seq, digest, None, *counts)
    return _Section(seq, digest, await _flaw_of_end(tx, head, seq, digest), waiting=await store.waiting(tx, org_id))


def _limit_entries(batches: list[Batch]) -> list[Batch]:
    """The first batches that together have at most ENTRIES_AT_ONCE entries, at least one batch."""
    total = 0
    for number, batch in enumerate(batches):
        total += _claimed(batch)
        if total > ENTRIES_AT_ONCE:
            return batches[:number]
    return batches


def _claimed(batch: Batch) -> int:
    """The number of entries that a batch claims, limited because the row may have been tampered with."""
    return min(abs(batch.entries), BATCH_SIZE)


async def _entries_of(tx: Tx, batches: Sequence[Batch]) -> dict[int, list[Entry]]:
    if not batches:
        return {}
    found: dict[int, list[Entry]] = {}
    # Limited, in case an attacker put a million rows into a batch.
    limit = ENTRIES_AT_ONCE + 1
    for entry in await store.in_batches(tx, batches[0].org_id, batches[0].seq, batches[-1].seq, limit):
        found.setdefault(entry.batch or 0, []).append(entry)
    return found


async def _start_after(tx: Tx, org_id: str, seq: int) -> _Section:
    """Start after batch `seq`: retention has dropped the tampered part, and the chain is intact from there on."""
    batch = await store.batch(tx, org_id, seq)
    return _Section(seq, b"", f"batch {seq:,} is missing") if batch is None else _Section(seq, batch.hash)


def _flaw_of_head(authenticator: HeadAuthenticator, head: Head) -> str | None:
    if not authenticator.is_genuine(head):
        return f"the end of its chain, batch {head.seq:,}, was changed or sealed with a secret that is not configured"
    if head.is_broken:
        return f"its chain was changed outside the hub before batch {head.broken:,} was sealed"
    return None


def _flaw_of_batch(head: Head, batch: Batch, seq: int, previous: bytes, entries: Sequence[Entry]) -> str | None:
    if batch.seq != seq + 1:
        return f"batch {seq + 1:,} is missing"
    if batch.seq > head.seq:
        return f"batch {batch.seq:,} was added outside the hub"
    if batch.seq <= head.dropped:
        return f"batch {batch.seq:,} was dropped, but has entries again" if entries else None
    if batch.dropped_at is not None:
        return f"batch {batch.seq:,} is marked as dropped, but not by retention"
    flaw = chain.find_flaw(batch, previous, entries)
    if flaw is None and batch.seq == 1 and all(entry.type != EntryType.ORG_CREATE.value for entry in entries):
        flaw = "has no entry about the organization's creation"
    return flaw and f"batch {batch.seq:,} {flaw}"


async def _flaw_of_end(tx: Tx, head: Head, seq: int, digest: bytes) -> str | None:
    if seq != head.seq:
        return f"batch {seq + 1:,} is missing"
    if digest != head.hash:
        return f"batch {seq:,} was changed"
    stray = await store.stray_batch(tx, head.org_id, head.dropped, head.seq)
    return None if stray is None else f"an entry claims to be in batch {stray:,}, which should have no entries"


class QuickReport(Struct, frozen=True):
    """The result of a quick check. `sealed_at` is None before the first batch."""

    sealed_at: int | None
    broken: bool


async def quick_check(tx: Tx, secret: ServerSecret, org_id: str, shown: Iterable[int]) -> QuickReport:
    """Verify the head and the shown batches, newest first, up to QUICK_CHECK_ENTRIES entries."""
    head, last = await store.head(tx, org_id), await store.last_batch(tx, org_id)
    if head is None or last is None:
        return QuickReport(None, broken=(head is None) != (last is None))
    if _flaw_of_head(HeadAuthenticator(secret), head) or (last.seq, last.hash) != (head.seq, head.hash):
        return QuickReport(last.sealed_at, broken=True)
    left = QUICK_CHECK_ENTRIES
    for run in _runs({head.seq, *shown}):
        # Includes the batch before the run, whose hash is part of the run's oldest batch.
        known = {batch.seq: batch for batch in await store.batches(tx, org_id, max(run[-1] - 2, 0), len(run) + 1)}
        within_limit = []
        for seq in run:
            left -= _claimed(known[seq]) if seq in known else 0
            if left >= 0:
                within_limit.append(seq)
        if await _is_flawed(tx, head, known, within_limit):
            return QuickReport(last.sealed_at, broken=True)
        if left < 0:
            break
    return QuickReport(last.sealed_at, broken=False)


def _runs(seqs: Iterable[int]) -> list[list[int]]:
    """Group consecutive numbers, highest first: 4, 8, 9 become [9, 8] and [4]."""
    runs: list[list[int]] = []
    for seq in sorted(seqs, reverse=True):
        if runs and runs[-1][-1] == seq + 1:
            runs[-1].append(seq)
        else:
            runs.append([seq])
    return runs


async def _is_flawed(tx: Tx, head: Head, known: Mapping[int, Batch], run: Sequence[int]) -> bool:
    """Whether a batch of a run is missing or does not verify. `known` also contains the batch before the run."""
    batches = [known[seq] for seq in reversed(run) if seq in known]
    if len(batches) < len(run):
        return True
    entries = await _entries_of(tx, batches)
    for batch in batches:
        previous = known[batch.seq - 1].hash if batch.seq - 1 in known else chain.FIRST_PREVIOUS_HASH
        if _flaw_of_batch(head, batch, batch.seq - 1, previous, entries.get(batch.seq, [])):
            return True
    return False
