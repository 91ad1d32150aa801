"""Walking every chain: what `hubgate doctor` says of the audit log, and what the page's badge shows.

A stretch at a time, each as the database stood at one moment, so that memory stays bounded and neither sealing nor
retention has to pause.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from hubgate.server.audit import chain, store
from hubgate.server.audit.head import Heads
from hubgate.server.audit.model import Batch, Entry, Head, Kind
from hubgate.server.audit.seal import BATCH
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx

BATCHES_AT_ONCE = 200
ENTRIES_AT_ONCE = 4000
ENTRIES_AT_A_GLANCE = 1000
MOST_FLAWS = 20


@dataclass
class Report:
    organizations: int = 0
    batches: int = 0
    entries: int = 0
    # Not sealed yet, and the time of the oldest of them.
    waiting: int = 0
    waiting_since: int | None = None
    # Sentences that name the organization and the batch: the first flaw of each organization.
    flaws: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Stretch:
    """A part of a chain that was walked: up to here it is sound, or has a flaw."""

    seq: int
    hash: bytes
    flaw: str | None = None
    batches: int = 0
    entries: int = 0
    # At the chain's end: how many entries wait, and since when.
    waiting: tuple[int, int | None] | None = None


async def verify(db: Database, secret: ServerSecret) -> Report:
    report, org_id = Report(), ""
    while (found := await store.next_organization(db, org_id)) is not None:
        org_id = found
        flaw = await _organization(db, Heads(secret), org_id, report)
        if flaw is not None:
            report.flaws.append(f"{await store.organization_name(db, org_id) or org_id}: {flaw}.")
            if len(report.flaws) == MOST_FLAWS:
                break
    return report


async def _organization(db: Database, heads: Heads, org_id: str, report: Report) -> str | None:
    report.organizations += 1
    walked = _Stretch(0, chain.FIRST)
    while walked.waiting is None and walked.flaw is None:
        walked = await db.read_long(partial(_walk, heads=heads, org_id=org_id, so_far=walked))
        report.batches += walked.batches
        report.entries += walked.entries
    count, since = walked.waiting or (0, None)
    report.waiting += count
    report.waiting_since = min(filter(None, (report.waiting_since, since)), default=None)
    if walked.flaw is None and walked.seq == 0 and not count:
        return "it has no log, not even of its founding"
    return walked.flaw


async def _walk(tx: Tx, heads: Heads, org_id: str, so_far: _Stretch) -> _Stretch:
    """The next stretch, judged by the head as it is at this moment."""
    head = await store.head(tx, org_id)
    batches = _few(await store.batches(tx, org_id, so_far.seq, BATCHES_AT_ONCE))
    if head is None:
        flaw = "the end of its chain is not on record" if batches or so_far.seq else None
        return _Stretch(so_far.seq, so_far.hash, flaw, waiting=await store.waiting(tx, org_id))
    if flaw := _flaw_of_head(heads, head):
        return _Stretch(so_far.seq, so_far.hash, flaw)
    if head.broken is not None and so_far.seq < head.broken:
        return await _begin_after(tx, org_id, head.broken)
    known = await _entries_of(tx, batches)
    seq, digest = so_far.seq, so_far.hash
    for batch in batches:
        if flaw := _flaw_of_batch(head, batch, seq, digest, known.get(batch.seq, [])):
            return _Stretch(seq, digest, flaw)
        seq, digest = batch.seq, batch.hash
    counts = len(batches), sum(map(len, known.values()))
    if batches:
        return _Stretch(seq, digest, None, *counts)
    return _Stretch(seq, digest, await _flaw_of_end(tx, head, seq, digest), waiting=await store.waiting(tx, org_id))


def _few(batches: list[Batch]) -> list[Batch]:
    """As many as have ENTRIES_AT_ONCE together, at least one."""
    total = 0
    for number, batch in enumerate(batches):
        total += _claimed(batch)
        if total > ENTRIES_AT_ONCE:
            return batches[:number]
    return batches


def _claimed(batch: Batch) -> int:
    """How many entries it says it has; what a row says is not to be trusted."""
    return min(abs(batch.entries), BATCH)


async def _entries_of(tx: Tx, batches: Sequence[Batch]) -> dict[int, list[Entry]]:
    if not batches:
        return {}
    found: dict[int, list[Entry]] = {}
    # Whoever put a million rows into a batch does not make us load them.
    most = ENTRIES_AT_ONCE + 1
    for entry in await store.in_batches(tx, batches[0].org_id, batches[0].seq, batches[-1].seq, most):
        found.setdefault(entry.batch or 0, []).append(entry)
    return found


async def _begin_after(tx: Tx, org_id: str, seq: int) -> _Stretch:
    """Retention has passed a break: whatever happened then, the chain is whole from there on."""
    batch = await store.batch(tx, org_id, seq)
    return _Stretch(seq, b"", f"batch {seq:,} is missing") if batch is None else _Stretch(seq, batch.hash)


def _flaw_of_head(heads: Heads, head: Head) -> str | None:
    if not heads.is_genuine(head):
        return f"the end of its chain, batch {head.seq:,}, was changed or is under a secret that is gone"
    if head.is_broken:
        return f"its chain was changed from outside before batch {head.broken:,} was sealed"
    return None


def _flaw_of_batch(head: Head, batch: Batch, seq: int, previous: bytes, entries: Sequence[Entry]) -> str | None:
    if batch.seq != seq + 1:
        return f"batch {seq + 1:,} is missing"
    if batch.seq > head.seq:
        return f"batch {batch.seq:,} was added from outside"
    if batch.seq <= head.dropped:
        return f"batch {batch.seq:,} was dropped, but has entries again" if entries else None
    if batch.dropped_at is not None:
        return f"batch {batch.seq:,} is marked as dropped, but not by retention"
    flaw = chain.flaw(batch, previous, entries)
    if flaw is None and batch.seq == 1 and all(entry.type != Kind.ORG_CREATE.value for entry in entries):
        flaw = "does not tell of the organization's founding"
    return flaw and f"batch {batch.seq:,} {flaw}"


async def _flaw_of_end(tx: Tx, head: Head, seq: int, digest: bytes) -> str | None:
    if seq != head.seq:
        return f"batch {seq + 1:,} is missing"
    if digest != head.hash:
        return f"batch {seq:,} was changed"
    stray = await store.stray(tx, head.org_id, head.dropped, head.seq)
    return None if stray is None else f"an entry claims to be in batch {stray:,}, which has none"


@dataclass(frozen=True)
class Glance:
    """What can be told at once. `sealed_at` is None before the first batch."""

    sealed_at: int | None
    broken: bool


async def glance(tx: Tx, secret: ServerSecret, org_id: str, shown: Iterable[int]) -> Glance:
    """The end of the chain and the batches that are shown, the newest first, within a page's worth of work."""
    head, last = await store.head(tx, org_id), await store.last_batch(tx, org_id)
    if head is None or last is None:
        return Glance(None, broken=(head is None) != (last is None))
    if _flaw_of_head(Heads(secret), head) or (last.seq, last.hash) != (head.seq, head.hash):
        return Glance(last.sealed_at, broken=True)
    left = ENTRIES_AT_A_GLANCE
    for run in _runs({head.seq, *shown}):
        # With the one before the run, whose hash is in its oldest.
        known = {batch.seq: batch for batch in await store.batches(tx, org_id, max(run[-1] - 2, 0), len(run) + 1)}
        affordable = []
        for seq in run:
            left -= _claimed(known[seq]) if seq in known else 0
            if left >= 0:
                affordable.append(seq)
        if await _is_flawed(tx, head, known, affordable):
            return Glance(last.sealed_at, broken=True)
        if left < 0:
            break
    return Glance(last.sealed_at, broken=False)


def _runs(seqs: Iterable[int]) -> list[list[int]]:
    """Neighbours together, the newest first: 4, 8, 9 are [9, 8] and [4]."""
    runs: list[list[int]] = []
    for seq in sorted(seqs, reverse=True):
        if runs and runs[-1][-1] == seq + 1:
            runs[-1].append(seq)
        else:
            runs.append([seq])
    return runs


async def _is_flawed(tx: Tx, head: Head, known: Mapping[int, Batch], run: Sequence[int]) -> bool:
    """Whether one of these neighbours is missing or not as it was sealed. `known` has the batch before them too."""
    batches = [known[seq] for seq in reversed(run) if seq in known]
    if len(batches) < len(run):
        return True
    entries = await _entries_of(tx, batches)
    for batch in batches:
        previous = known[batch.seq - 1].hash if batch.seq - 1 in known else chain.FIRST
        if _flaw_of_batch(head, batch, batch.seq - 1, previous, entries.get(batch.seq, [])):
            return True
    return False
