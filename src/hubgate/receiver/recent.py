"""Recent deliveries for the landing page, in memory and without secrets."""

import threading
import time
from collections import deque
from dataclasses import dataclass, field

from hubgate.receiver.log import printable
from hubgate.receiver.payload import WebhookPayload

MAX_ACCEPTED = 50
# Anybody can send deliveries that are rejected; they must not push out accepted ones.
MAX_REJECTED = 10


@dataclass(frozen=True)
class Outcome:
    """How an outcome is displayed: symbol, word and tone."""

    mark: str
    word: str
    tone: str


DONE = Outcome("✓", "Done", "ok")
STORED = Outcome("↻", "In the inbox", "accent")
DUPLICATE = Outcome("–", "Duplicate", "muted")  # noqa: RUF001
UNHANDLED = Outcome("–", "No handler", "muted")  # noqa: RUF001
FAILED = Outcome("✕", "Failed", "danger")
REJECTED = Outcome("✕", "Rejected", "danger")


@dataclass(frozen=True)
class Entry:
    path: str
    event: str
    repo: str
    delivery_id: str
    outcome: Outcome
    status: int | None
    seconds: float | None
    at: float = field(default_factory=time.time)


class RecentDeliveries:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accepted: deque[Entry] = deque(maxlen=MAX_ACCEPTED)
        self._rejected: deque[Entry] = deque(maxlen=MAX_REJECTED)

    def add(self, entry: Entry) -> None:
        with self._lock:
            (self._rejected if entry.outcome is REJECTED else self._accepted).append(entry)

    def newest_first(self) -> list[Entry]:
        with self._lock:
            return sorted((*self._accepted, *self._rejected), key=lambda entry: entry.at, reverse=True)


def create_entry(
    path: str,
    payload: WebhookPayload | None,
    delivery_id: str | None,
    outcome: Outcome,
    status: int | None,
    seconds: float | None = None,
) -> Entry:
    event = f"{payload.event.scope} {payload.event.action}" if payload else ""
    name = payload.repo.name if payload else ""
    return Entry(path, printable(event), printable(name), printable(delivery_id or ""), outcome, status, seconds)
