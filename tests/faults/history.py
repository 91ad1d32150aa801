"""Invariants of every run, after any kill, freeze or full disk. Pure, with its own oracle.

A run is a history: committed changes, which webhook is entitled to which repos, when a webhook was disabled, and every
request that receivers saw. `complaints` lists the violations.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

CAP = 8
# Requests in flight when a webhook was disabled may still be received.
IN_FLIGHT_SECONDS = 1.0


@dataclass(frozen=True)
class Change:
    """The event with this number in its repo."""

    repo: str
    seq: int


@dataclass(frozen=True)
class Arrival:
    """A request as its receiver saw it. `address` is the webhook it was sent to, `webhook` the one it names."""

    address: str
    webhook: str
    delivery: str
    attempt: int
    change: Change
    body: bytes
    began: float
    # When it was answered, or its connection ended.
    ended: float


@dataclass(frozen=True)
class Silence:
    """From the answer that disabled the webhook until the request that enabled it."""

    webhook: str
    since: float
    until: float
    # Changes that it never receives.
    missed: frozenset[Change] = frozenset()


@dataclass(frozen=True)
class History:
    committed: frozenset[Change]
    # Webhook to the repos that its owner watches and may read.
    entitled: dict[str, frozenset[str]]
    arrivals: Sequence[Arrival]
    silences: Sequence[Silence] = field(default_factory=tuple)


def complaints(history: History) -> list[str]:
    return [
        *_missing(history),
        *_uninvited(history),
        *_differing(history),
        *_out_of_sequence(history),
        *_too_many_at_once(history),
        *_not_silent(history),
    ]


def _missing(history: History) -> Iterator[str]:
    """At least once: every change reaches all entitled webhooks."""
    seen = {(arrival.webhook, arrival.change) for arrival in history.arrivals}
    excused = {(silence.webhook, change) for silence in history.silences for change in silence.missed}
    for webhook, repos in history.entitled.items():
        for change in history.committed:
            wanted = change.repo in repos and (webhook, change) not in excused
            if wanted and (webhook, change) not in seen:
                yield f"{webhook} never heard of {change}"


def _uninvited(history: History) -> Iterator[str]:
    """No other webhook, no other address, and no change that did not happen."""
    for arrival in history.arrivals:
        if arrival.change not in history.committed:
            yield f"{arrival.webhook} heard of {arrival.change}, which never happened"
        if arrival.change.repo not in history.entitled.get(arrival.webhook, frozenset()):
            yield f"{arrival.webhook} heard of {arrival.change} and may not"
        if arrival.address != arrival.webhook:
            yield f"{arrival.address} was sent what is {arrival.webhook}'s"


def _differing(history: History) -> Iterator[str]:
    """Duplicates have the same id and the same bytes, and an id belongs to one delivery forever."""
    ids: dict[tuple[str, Change], set[str]] = defaultdict(set)
    bodies: dict[str, set[bytes]] = defaultdict(set)
    subjects: dict[str, set[tuple[str, Change]]] = defaultdict(set)
    for arrival in history.arrivals:
        subject = (arrival.webhook, arrival.change)
        ids[subject].add(arrival.delivery)
        bodies[arrival.delivery].add(arrival.body)
        subjects[arrival.delivery].add(subject)
    yield from (f"{subject} came under {len(found)} ids" for subject, found in ids.items() if len(found) > 1)
    yield from (f"{delivery} came with {len(found)} bodies" for delivery, found in bodies.items() if len(found) > 1)
    yield from (f"{delivery} is of {len(found)} deliveries" for delivery, found in subjects.items() if len(found) > 1)


def _out_of_sequence(history: History) -> Iterator[str]:
    """First attempts of one repo are sent in sequence.

    An attempt of a process that died before sending counts too: the first one received is then the second, and says
    so.
    """
    first: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for arrival in history.arrivals:
        if arrival.attempt == 1:
            began = first[(arrival.webhook, arrival.change.repo)]
            began[arrival.change.seq] = min(arrival.began, began.get(arrival.change.seq, arrival.began))
    for (webhook, repo), began in first.items():
        in_time = sorted(began, key=lambda seq: began[seq])
        if in_time != sorted(began):
            yield f"first attempts of {repo} came to {webhook} as {in_time}"


def _too_many_at_once(history: History) -> Iterator[str]:
    steps: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for arrival in history.arrivals:
        steps[arrival.webhook] += [(arrival.began, 1), (arrival.ended, -1)]
    for webhook, found in steps.items():
        # One that ends when another begins makes room for it.
        open_now = most = 0
        for _, step in sorted(found):
            open_now += step
            most = max(most, open_now)
        if most > CAP:
            yield f"{webhook} had {most} requests at once"


def _not_silent(history: History) -> Iterator[str]:
    for silence in history.silences:
        for arrival in history.arrivals:
            if arrival.webhook == silence.webhook and silence.since + IN_FLIGHT_SECONDS < arrival.began < silence.until:
                yield f"{silence.webhook} was disabled and heard of {arrival.change}"
