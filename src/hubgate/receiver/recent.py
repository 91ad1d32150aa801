"""The last deliveries, for the landing page. In memory, and without anything secret."""

import threading
import time
from collections import deque
from dataclasses import dataclass, field

from hubgate.receiver.payload import WebhookPayload

MOST = 50
# Anybody can send what is refused; it must not push out what was let in.
MOST_REFUSED = 10
MOST_LETTERS = 100


@dataclass(frozen=True)
class Outcome:
    """How it looks: a mark, a word, and whether that is good."""

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
        self._let_in: deque[Entry] = deque(maxlen=MOST)
        self._refused: deque[Entry] = deque(maxlen=MOST_REFUSED)

    def add(self, entry: Entry) -> None:
        with self._lock:
            (self._refused if entry.outcome is REFUSED else self._let_in).append(entry)

    def newest_first(self) -> list[Entry]:
        with self._lock:
            return sorted((*self._let_in, *self._refused), key=lambda entry: entry.at, reverse=True)


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
    """What others wrote, for one line of a log or a page: nothing that ends or turns the line, and not without end."""
    kept = "".join(mark for mark in text[: 2 * MOST_LETTERS] if mark.isprintable())
    return kept if len(kept) <= MOST_LETTERS else kept[: MOST_LETTERS - 1] + "…"
