"""Sends events to a receiver on this machine, as the hub would: the same bytes and headers."""

import argparse
import contextlib
import time
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hubgate.client.addresses import origin_of
from hubgate.client.models import WebhookEvent
from hubgate.client.responses import sanitized
from hubgate.client.transport import translate_error

if TYPE_CHECKING:
    import httpx

# As long as the hub waits for a receiver.
SECONDS = 15.0
# A longer body, or an endless one, is not read to its end: the next event would wait for it.
MAX_READ = 64 * 1024
SECRET_HEADER = "X-Webhook-Secret"  # noqa: S105 (the name of the header)


@dataclass(frozen=True)
class Forwarded:
    """The result of one request: a status or an error, and the time it took."""

    status: int | None
    error: str | None
    duration_ms: int

    def __str__(self) -> str:
        return f"← {self.status} {self.duration_ms}ms" if self.error is None else f"✕ {sanitized(self.error, 200)}"


class Forwarder:
    """Forwards events over one connection. `secret` is added as a header, which the hub leaves out of its streams."""

    def __init__(self, url: str, secret: str | None) -> None:
        import httpx

        # Proxies and redirects are for the hub, not for a receiver on this machine.
        self._client = httpx.Client(timeout=SECONDS, trust_env=False, verify=url.startswith("https:"))
        self._url, self._secret = url, secret

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._client.close()

    def send(self, event: WebhookEvent) -> Forwarded:
        import httpx

        headers = dict(event.headers or {})
        if self._secret is not None:
            headers[SECRET_HEADER] = self._secret
        # Not built by the client, which would add headers.
        request = httpx.Request("POST", self._url, headers=headers, content=(event.body or "").encode())
        started = time.monotonic()
        status, error = None, None
        try:
            status = self._respond(request)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ValueError) as failure:
            error = str(translate_error(failure, self._url))
        return Forwarded(status, error, round((time.monotonic() - started) * 1000))

    def _respond(self, request: "httpx.Request") -> int:
        """The status of the response. A body of usual size is read, so that the connection can be used again."""
        ends, size = time.monotonic() + SECONDS, 0
        with contextlib.closing(self._client.send(request, stream=True)) as response:
            for piece in response.iter_raw():
                size += len(piece)
                if size > MAX_READ or time.monotonic() > ends:
                    break
        return response.status_code


def forward_url(text: str) -> str:
    """Argparse type for the address of a receiver."""
    try:
        origin_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from None
    return text
