"""Follows the stream of a webhook across lost connections, and prints and forwards each event."""

import json
import sys
import time
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from hubgate.cli.user import common
from hubgate.cli.user.cursors import StoredCursor
from hubgate.cli.user.forwarding import Forwarder
from hubgate.cli.user.interrupts import Interrupts
from hubgate.client import Gone, Hub, HubFailure, HubgateError, RateLimited, Refused, StoreUnusable, Unreachable
from hubgate.client.codec import encode
from hubgate.client.models import WebhookEvent
from hubgate.client.responses import sanitized

# A stream that ends sooner counts as a failure, so that a hub that ends every stream is not flooded with requests.
_SHORT_SECONDS = 1.0


@dataclass(frozen=True)
class Patience:
    """How long network failures are retried, and the pauses between tries, all in seconds. Tests use shorter ones."""

    give_up_after: float = 600.0
    pauses: Sequence[float] = (1, 2, 4, 8, 16, 30)


PATIENCE = Patience()


class EventHandler:
    """Prints each event, and sends it to a receiver. A failed request is printed too."""

    def __init__(
        self, forwarder: Forwarder | None, scopes: Collection[str] | None, *, with_payload: bool, as_json: bool
    ) -> None:
        self._forwarder, self._scopes = forwarder, scopes
        self._with_payload, self._as_json = with_payload, as_json

    def handle(self, event: WebhookEvent) -> None:
        payload = _payload(event)
        scope, action = _text(payload, "event", "scope"), _text(payload, "event", "action")
        repo = _text(payload, "repo", "name")
        if self._scopes is not None and scope not in self._scopes:
            return
        if event.skipped is not None:
            self._print(f"– skipped ({sanitized(event.skipped, 40)}) #{event.cursor}")  # noqa: RUF001
        else:
            self._print(f"→ {scope} {action} {repo} #{event.cursor}")
            if self._with_payload and not self._as_json:
                print(_shown(payload), flush=True)
        forwarded = self._forwarder.send(event) if self._forwarder and event.skipped is None else None
        if self._as_json:
            result = {} if forwarded is None else {"forwarded": encode(forwarded)}
            print(common.compact({**encode(event), **result}), flush=True)
        elif forwarded is not None:
            self._print(str(forwarded))

    def _print(self, text: str) -> None:
        if not self._as_json:
            print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Listener:
    """Follows a webhook from its stored cursor on. The cursor is stored after each event has been handled."""

    def __init__(
        self,
        hub: Hub,
        webhook_id: str,
        organization: str | None,
        cursor: StoredCursor,
        handler: EventHandler,
        interrupts: Interrupts,
        patience: Patience = PATIENCE,
    ) -> None:
        self._hub, self._webhook_id, self._organization = hub, webhook_id, organization
        self._cursor, self._handler, self._interrupts = cursor, handler, interrupts
        self._patience = patience
        self._failing_since: float | None = None
        self._failures = 0
        # Whether the line about the lost connection is still without its line break.
        self._line_is_open = False
        self._opened_at = 0.0

    def run(self) -> None:
        """Follow until an error that another try would not fix."""
        try:
            while True:
                try:
                    self._follow()
                except HubgateError as error:
                    self._retry_later(error)
        finally:
            self._end_line()

    def _follow(self) -> None:
        latest = self._hub.webhook_events(self._webhook_id, after="latest", organization=self._organization).cursor
        if self._cursor.value is None:
            self._cursor.save(latest)
        missed = latest - (self._cursor.value or 0)
        try:
            self._hub.follow_webhook(
                self._webhook_id,
                self._handle,
                after=self._cursor.value,
                on_open=lambda: self._opened(missed),
                organization=self._organization,
            )
        except Gone as error:
            raise self._expired(error) from error
        if time.monotonic() - self._opened_at < _SHORT_SECONDS:
            raise HubFailure("The hub ended the stream.")

    def _opened(self, missed: int) -> None:
        self._opened_at = time.monotonic()
        self._failing_since = None
        if self._line_is_open:
            self._notify(f" resumed, {missed} missed follow" if missed > 0 else " resumed")
            self._end_line()

    def _handle(self, event: WebhookEvent) -> None:
        self._failures = 0
        with self._interrupts.deferred():
            self._handler.handle(event)
            self._cursor.save(event.cursor)

    def _expired(self, error: Gone) -> HubgateError:
        """The error for events that are no longer stored. The next command continues with the oldest stored event."""
        if error.oldest is None:
            return error
        missing = (self._cursor.value or 0) + 1
        self._cursor.save(error.oldest - 1)
        return HubgateError(
            f"events {missing} to {error.oldest - 1} are no longer stored. "
            f"Run the command again to continue with event {error.oldest}."
        )

    def _retry_later(self, error: HubgateError) -> None:
        """Wait before the next try. Raises the error if another try would not help, or if it has lasted too long."""
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        if _is_final(error) or now - self._failing_since > self._patience.give_up_after:
            raise error
        pauses = self._patience.pauses
        pause = pauses[min(self._failures, len(pauses) - 1)]
        self._failures += 1
        self._end_line()
        self._notify(f"! connection lost, retry in {pause:g}s…")
        self._line_is_open = True
        time.sleep(pause)

    def _notify(self, text: str) -> None:
        print(text, end="", file=sys.stderr, flush=True)

    def _end_line(self) -> None:
        if self._line_is_open:
            print(file=sys.stderr, flush=True)
            self._line_is_open = False


def _is_final(error: HubgateError) -> bool:
    """Whether another try would fail too: the hub refused, or the problem is on this machine."""
    if isinstance(error, Unreachable):
        return not error.worth_retrying
    is_refusal = isinstance(error, Refused) and not isinstance(error, HubFailure | RateLimited)
    return is_refusal or isinstance(error, StoreUnusable) or type(error) is HubgateError


def _payload(event: WebhookEvent) -> Any:
    try:
        return json.loads(event.body or "{}")
    except (ValueError, RecursionError):
        return {}


def _text(payload: Any, *path: str) -> str:
    for name in path:
        payload = payload.get(name) if isinstance(payload, dict) else None
    return sanitized(payload, 120) if isinstance(payload, str) else "?"


def _shown(payload: object) -> str:
    """The payload in several lines, without control and bidi characters."""
    text = json.dumps(payload, indent=2, ensure_ascii=False)
    return "".join(c for c in text if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Cn"))
