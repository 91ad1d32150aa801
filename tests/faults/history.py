"""Invariants of every run, after any kill, freeze or full disk: pure functions that share no code with the hub.

A run is a history: committed changes, which webhook is entitled to which repos, when a webhook was disabled, and every
request that receivers saw. `violations` lists every violated invariant.
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
class ReceivedRequest:
    """A request as its receiver saw it. `address` is the webhook it was sent to, `webhook` the one it names."""

    address: str
    webhook: str
    delivery: str
    attempt: int
    change: Change
    body: bytes
    began: float
    # The time of the response, or of the end of the connection.
    ended: float


@dataclass(frozen=True)
class DisabledPeriod:
    """The time from the response that disabled a webhook until the request that enabled it."""

    webhook: str
    since: float
    until: float
    # Changes that the webhook never receives.
    missed: frozenset[Change] = frozenset()


@dataclass(frozen=True)
class History:
    committed: frozenset[Change]
    # Webhook to the repos that its owner watches and may read.
    entitled: dict[str, frozenset[str]]
    received: Sequence[ReceivedRequest]
    disabled_periods: Sequence[DisabledPeriod] = field(default_factory=tuple)


def violations(history: History) -> list[str]:
    return [
        *_missing(history),
        *_not_entitled(history),
        *_inconsistent_duplicates(history),
        *_out_of_sequence(history),
        *_too_many_concurrent(history),
        *_received_while_disabled(history),
    ]


def _missing(history: History) -> Iterator[str]:
    """At least once: every change reaches all entitled webhooks."""
    seen = {(request.webhook, request.change) for request in history.received}
    excused = {(period.webhook, change) for period in history.disabled_periods for change in period.missed}
    for webhook, repos in history.entitled.items():
        for change in history.committed:
            expected = change.repo in repos and (webhook, change) not in excused
            if expected and (webhook, change) not in seen:
                yield f"{webhook} never received {change}"


def _not_entitled(history: History) -> Iterator[str]:
    """No other webhook and no other address receives a change, and no change is received that was not committed."""
    for request in history.received:
        if request.change not in history.committed:
            yield f"{request.webhook} received {request.change}, which was not committed"
        if request.change.repo not in history.entitled.get(request.webhook, frozenset()):
            yield f"{request.webhook} received {request.change} without access to the repo"
        if request.address != request.webhook:
            yield f"{request.address} received a delivery for {request.webhook}"


def _inconsistent_duplicates(history: History) -> Iterator[str]:
    """Duplicates have the same id and the same bytes, and an id is never used for another delivery."""
    ids: dict[tuple[str, Change], set[str]] = defaultdict(set)
    bodies: dict[str, set[bytes]] = defaultdict(set)
    subjects: dict[str, set[tuple[str, Change]]] = defaultdict(set)
    for request in history.received:
        subject = (request.webhook, request.change)
        ids[subject].add(request.delivery)
        bodies[request.delivery].add(request.body)
        subjects[request.delivery].add(subject)
    yield from (f"{subject} was sent with {len(found)} ids" for subject, found in ids.items() if len(found) > 1)
    yield from (f"{delivery} was sent with {len(found)} bodies" for delivery, found in bodies.items() if len(found) > 1)
    yield from (
        f"{delivery} is the id of {len(found)} deliveries" for delivery, found in subjects.items() if len(found) > 1
    )


def _out_of_sequence(history: History) -> Iterator[str]:
    """First attempts of one repo are sent in sequence.

    An attempt of a process that died before sending counts too: the first request received then has attempt number 2.
    """
    first: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for request in history.received:
        if request.attempt == 1:
            began = first[(request.webhook, request.change.repo)]
            began[request.change.seq] = min(request.began, began.get(request.change.seq, request.began))
    for (webhook, repo), began in first.items():
        in_time = sorted(began, key=lambda seq: began[seq])
        if in_time != sorted(began):
            yield f"first attempts of {repo} were sent to {webhook} in the order {in_time}"


def _too_many_concurrent(history: History) -> Iterator[str]:
    steps: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for request in history.received:
        steps[request.webhook] += [(request.began, 1), (request.ended, -1)]
    for webhook, found in steps.items():
        # A request that ends when another begins does not overlap it.
        open_now = peak = 0
        for _, step in sorted(found):
            open_now += step
            peak = max(peak, open_now)
        if peak > CAP:
            yield f"{webhook} had {peak} concurrent requests"


def _received_while_disabled(history: History) -> Iterator[str]:
    for period in history.disabled_periods:
        for request in history.received:
            if request.webhook == period.webhook and period.since + IN_FLIGHT_SECONDS < request.began < period.until:
                yield f"{period.webhook} was disabled and received {request.change}"
