"""What a try came to, and what follows from it. Pure but for the jitter, which is given."""

import html
import json
import re
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from urllib.parse import quote

from msgspec import Struct

from hubgate.server.clock import SECOND
from hubgate.server.egress.connection import HttpResponse
from hubgate.server.webhooks.model import DELIVERED, FAILED, JITTER, LONGEST_WAIT, RETRYING

NO_ANSWER = "No answer from the address."
LONGEST_RESPONSE = 4096
GONE = 410


class Try(Struct, frozen=True):
    """`answer` is None where none came: blocked, refused and timed out look alike (attack W18)."""

    at: int
    duration_ms: int
    answer: HttpResponse | None
    # What was sent along and must not be read in what came back.
    secret: str = ""

    @property
    def status(self) -> int | None:
        return self.answer.status if self.answer else None

    @property
    def error(self) -> str:
        return "" if self.answer else NO_ANSWER

    @property
    def response(self) -> bytes:
        return _masked(self.answer.body, self.secret)[:LONGEST_RESPONSE] if self.answer else b""

    @property
    def arrived(self) -> bool:
        return self.answer is not None and 200 <= self.answer.status < 300


class Verdict(Struct, frozen=True):
    state: str
    # When to try again; None where that was the last.
    due_at: int | None


def _masked(body: bytes, secret: str) -> bytes:
    """A receiver may repeat the headers it was sent, as they were or as JSON, HTML and addresses write them (W33)."""
    if not secret:
        return body
    spellings = {secret, json.dumps(secret)[1:-1], html.escape(secret), quote(secret, safe="")}
    # Whatever begins within the excerpt is looked at in full, and masks are as long as what they hide: none is cut.
    found = body[: LONGEST_RESPONSE + max(map(len, spellings))]
    for spelling in sorted(spellings, key=len, reverse=True):
        found = found.replace(spelling.encode(), b"*" * len(spelling))
    return found


def judge(tried: Try, backoff: Sequence[int], attempts_before: int, now: int, chance: float) -> Verdict:
    """`chance` from 0 to 1 moves the wait within the jitter."""
    if tried.arrived:
        return Verdict(DELIVERED, None)
    wait = delay(backoff, attempts_before, chance)
    if wait is None or tried.status == GONE:
        return Verdict(FAILED, None)
    return Verdict(RETRYING, now + max(wait, _asked_wait(tried.answer, now)))


def delay(backoff: Sequence[int], attempts_before: int, chance: float) -> int | None:
    if attempts_before >= len(backoff):
        return None
    return int(backoff[attempts_before] * (1 - JITTER + 2 * JITTER * chance))


def _asked_wait(answer: HttpResponse | None, now: int) -> int:
    """Retry-After, seconds or a date (RFC 9110 10.2.3), up to a day (attack W35)."""
    said = (answer.header("retry-after") or "").strip() if answer else ""
    if re.fullmatch(r"\d{1,20}", said, re.ASCII):
        return min(int(said) * SECOND, LONGEST_WAIT)
    try:
        until = int(parsedate_to_datetime(said).timestamp()) * SECOND
    except (ValueError, OverflowError):
        return 0
    return min(max(until - now, 0), LONGEST_WAIT)
