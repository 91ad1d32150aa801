"""Invariants of every run, after any kill, freeze or full disk: pure functions that share no code with the hub.

A run is a history: committed changes, which webhook is entitled to which repos, when a webhook was disabled, what
happened to the processes of the hub, and every request that receivers saw. `violations` lists every violated invariant.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

CAP = 8
# Requests in flight when a webhook was disabled may still be received.
IN_FLIGHT_SECONDS = 3.0
# The result of a request is stored within this time, also on a busy machine.
STORED_SECONDS = 15.0
# The receiver may notice the end of a connection later than the sender's process, by this time.
OVERLAP_SECONDS = 0.5
# A stopping process waits this long for responses, with a tolerance.
FINISH_SECONDS = 3.8


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
    # The status of the response; None if the sender ended the connection before it.
    status: int | None = 200
    # The receiver itself ended the connection, without a response.
    was_dropped: bool = False


@dataclass(frozen=True)
class DisabledPeriod:
    """The time from the response that disabled a webhook until the request that enabled it."""

    webhook: str
    since: float
    until: float
    # Changes that the webhook never receives.
    missed: frozenset[Change] = frozenset()


class Incident(Enum):
    DIED = "died"
    FROZE = "froze"
    CUT_OFF = "was cut off from the database"
    # Told to stop, or to leave webhooks to a process that has started.
    STOPPING = "was stopping"


@dataclass(frozen=True)
class Disturbance:
    """What happened to a process, and when. A death that was noticed later began when it was last seen alive."""

    incident: Incident
    since: float
    until: float


@dataclass(frozen=True)
class History:
    committed: frozenset[Change]
    # Webhook to the repos that its owner watches and may read.
    entitled: dict[str, frozenset[str]]
    received: Sequence[ReceivedRequest]
    disabled_periods: Sequence[DisabledPeriod] = field(default_factory=tuple)
    disturbances: Sequence[Disturbance] = field(default_factory=tuple)


def violations(history: History) -> list[str]:
    return [
        *_missing(history),
        *_not_entitled(history),
        *_inconsistent_duplicates(history),
        *_duplicates_without_cause(history),
        *_sent_by_two(history),
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


def _duplicates_without_cause(history: History) -> Iterator[str]:
    """A delivery is sent again only if it failed, under the next attempt number, or if a process was disturbed before
    it could store the result.
    """
    by_delivery: dict[str, list[ReceivedRequest]] = defaultdict(list)
    for request in sorted(history.received, key=lambda each: each.began):
        for earlier in by_delivery[request.delivery]:
            is_same_attempt = earlier.attempt >= request.attempt and not earlier.was_dropped
            had_arrived = earlier.status is not None and 200 <= earlier.status < 300
            if (is_same_attempt or had_arrived) and not any(map(_excuses(earlier), history.disturbances)):
                yield (
                    f"{request.webhook} received {request.change} twice, as attempts {earlier.attempt} and"
                    f" {request.attempt}, {request.began - earlier.ended:.2f} s apart, and nothing had happened"
                )
        by_delivery[request.delivery].append(request)


def _excuses(earlier: ReceivedRequest) -> Callable[[Disturbance], bool]:
    """Whether a disturbance can have kept a process from storing the result of a request."""

    def excuses(disturbance: Disturbance) -> bool:
        if disturbance.since > earlier.ended + STORED_SECONDS or disturbance.until < earlier.began:
            return False
        if disturbance.incident is Incident.STOPPING:
            return earlier.status is None and earlier.ended - max(disturbance.since, earlier.began) >= FINISH_SECONDS
        return True

    return excuses


def _sent_by_two(history: History) -> Iterator[str]:
    """Requests of one delivery never overlap, except those of a process that froze: it could not end them."""
    frozen = [each for each in history.disturbances if each.incident is Incident.FROZE]
    last: dict[str, ReceivedRequest] = {}
    for request in sorted(history.received, key=lambda each: each.began):
        earlier = last.setdefault(request.delivery, request)
        overlap = earlier is not request and request.began < earlier.ended - OVERLAP_SECONDS
        if overlap and not any(each.since <= earlier.ended and earlier.began <= each.until for each in frozen):
            yield f"{request.webhook} received {request.change} while it still was in flight"
        if request.ended >= earlier.ended:
            last[request.delivery] = request


def _out_of_sequence(history: History) -> Iterator[str]:
    """First attempts of one repo are sent in sequence.

    If no receiver listened at the first attempt, the first request received has attempt number 2.
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
