"""The outcome of an attempt, and what follows from it. No I/O."""

import html
import json
import re
from collections.abc import Sequence
from datetime import UTC
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
    """An attempt. `answer` is None without a response: blocked, refused and timed out look the same (attack W18)."""

    at: int
    duration_ms: int
    answer: HttpResponse | None
    # Must not be readable in the stored response, however it is written there.
    secret: str = ""

    @property
    def status(self) -> int | None:
        return self.answer.status if self.answer else None

    @property
    def error(self) -> str:
        return "" if self.answer else NO_ANSWER

    @property
    def response(self) -> bytes:
        """The beginning of the response without the secret: a receiver may repeat the request's headers (W33)."""
        body = self.answer.body if self.answer else b""
        if not self.secret or len(body) < len(self.secret):
            return body[:LONGEST_RESPONSE]
        spellings = _spellings(self.secret)
        # A secret that begins within the excerpt is masked in full, by a mask of the same length.
        found = body[: LONGEST_RESPONSE + len(spellings[0])]
        for spelling in spellings:
            found = found.replace(spelling, b"*" * len(spelling))
        return found[:LONGEST_RESPONSE]

    @property
    def arrived(self) -> bool:
        return self.answer is not None and 200 <= self.answer.status < 300


def _spellings(secret: str) -> tuple[bytes, ...]:
    """The secret as it is, and as JSON, HTML and URLs write it; the longest first."""
    spellings = {secret, json.dumps(secret)[1:-1], html.escape(secret), quote(secret, safe="")}
    return tuple(sorted((spelling.encode() for spelling in spellings), key=len, reverse=True))


class Verdict(Struct, frozen=True):
    state: str
    # When to try again; None after the last attempt.
    due_at: int | None


def judge(tried: Try, backoff: Sequence[int], attempts_before: int, now: int, chance: float) -> Verdict:
    """The state of a delivery after an attempt. `chance`, from 0 to 1, moves the wait within the jitter."""
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
    """The wait that Retry-After asks for, as seconds or a date (RFC 9110 10.2.3), up to a day (attack W35)."""
    said = (answer.header("retry-after") or "").strip() if answer else ""
    if re.fullmatch(r"\d{1,20}", said, re.ASCII):
        return min(int(said) * SECOND, LONGEST_WAIT)
    try:
        date = parsedate_to_datetime(said)
        # Without a zone, as in the format of asctime, a date is in UTC (RFC 9110 5.6.7).
        until = int((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()) * SECOND
    except (ValueError, OverflowError):
        return 0
    return min(max(until - now, 0), LONGEST_WAIT)
