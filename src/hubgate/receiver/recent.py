"""Recent deliveries for the landing page, in memory and without secrets."""

import threading
import time
from collections import deque
from dataclasses import dataclass, field

from hubgate.receiver.payload import WebhookPayload

MOST = 50
# Anybody can send deliveries that are rejected; they must not push out accepted ones.
MOST_REFUSED = 10
MOST_LETTERS = 100


@dataclass(frozen=True)
class Outcome:
    """How an outcome is displayed: symbol, word and tone."""

    mark: str
    word: str
    tone: str


DONE = Outcome("✓", "Done", "ok")
KEPT = Outcome("↻", "In the inbox", "accent")
AGAIN = Outcome("–", "Seen before", "muted")  # noqa: RUF001
PASSED = Outcome("–", "No handler", "muted")  # noqa: RUF001
FAILED = Outcome("✕", "Failed", "danger")
REFUSED = Outcome("✕", "Refused", "danger")


@dataclass(frozen=True)
class Entry:
    path: str
    what: str
    repo: str
    delivery_id: str
    outcome: Outcome
    status: int | None
    seconds: float | None
    at: float = field(default_factory=time.time)


class Recent:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accepted: deque[Entry] = deque(maxlen=MOST)
        self._refused: deque[Entry] = deque(maxlen=MOST_REFUSED)

    def add(self, entry: Entry) -> None:
        with self._lock:
            (self._refused if entry.outcome is REFUSED else self._accepted).append(entry)

    def newest_first(self) -> list[Entry]:
        with self._lock:
            return sorted((*self._accepted, *self._refused), key=lambda entry: entry.at, reverse=True)


def entry(
    path: str,
    payload: WebhookPayload | None,
    delivery_id: str | None,
    outcome: Outcome,
    status: int | None,
    seconds: float | None = None,
) -> Entry:
    what = f"{payload.event.scope} {payload.event.action}" if payload else ""
    name = payload.repo.name if payload else ""
    return Entry(path, plain(what), plain(name), plain(delivery_id or ""), outcome, status, seconds)


def plain(text: str) -> str:
    """Sanitize untrusted text for one line of a log or page: printable characters only, of limited length."""
    shown = "".join(mark for mark in text[: 2 * MOST_LETTERS] if mark.isprintable())
    return shown if len(shown) <= MOST_LETTERS else shown[: MOST_LETTERS - 1] + "…"
