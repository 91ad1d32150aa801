"""Requests to the store: signed, repeated after failures that may pass, with errors that say what failed."""

import asyncio
import logging
import random
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from time import monotonic

import httpx
from msgspec import Struct

from hubgate.server.clock import Clock
from hubgate.server.objects.location import S3Location
from hubgate.server.objects.model import StoreFull, StoreProblem, StoreRefused, StoreUnavailable
from hubgate.server.objects.s3.answers import Error, error_of
from hubgate.server.objects.s3.signatures import EMPTY_DIGEST, Signer, encoded

log = logging.getLogger("hubgate.objects")

# Listings have a thousand names.
_LONGEST_ANSWER = 8 * 1024 * 1024
_CHUNK = 256 * 1024
_CONNECT_SECONDS = 5.0
# Times the longest silence, for a store that sends an answer byte by byte.
_DEADLINE = 3
_RETRIED_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
_RETRIED_CODES = frozenset({"SlowDown", "InternalError", "RequestTimeout", "ConditionalRequestConflict"})
_FULL_CODES = frozenset({"QuotaExceeded", "XMinioStorageFull", "XMinioStorageQuotaExceeded", "StorageFull"})


class Pace(Struct, frozen=True):
    # A store that accepts or sends nothing for this long is given up.
    silence_seconds: float = 20.0
    # A request is repeated for about this long after it first failed.
    retry_seconds: float = 15.0
    attempts: int = 5
    first_pause: float = 0.2


class Body(Struct, frozen=True):
    """The body of a request, which can be produced again."""

    size: int
    digest: str
    parts: Callable[[], AsyncIterator[bytes]]


class Answer(Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def error(self) -> Error:
        return error_of(self.body)


class Attempts:
    """Decides whether a request is repeated, and waits before that."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._until = 0.0
        self._failed = 0

    async def again(self) -> bool:
        # From the first failure on: a part of a large file may take minutes before it fails.
        self._until = self._until or monotonic() + self._pace.retry_seconds
        self._failed += 1
        # Random, so that requests that failed together are not repeated together.
        pause = self._pace.first_pause * 3 ** (self._failed - 1) * random.uniform(0.5, 1.0)  # noqa: S311
        if self._failed >= self._pace.attempts or monotonic() + pause > self._until:
            return False
        await asyncio.sleep(pause)
        return True


class Transport:
    def __init__(
        self, location: S3Location, signer: Signer, clock: Clock, pace: Pace, tls: ssl.SSLContext | None = None
    ) -> None:
        """`tls` is needed for https."""
        self.location, self.signer, self.clock, self.pace = location, signer, clock, pace
        timeout = httpx.Timeout(pace.silence_seconds, connect=min(_CONNECT_SECONDS, pace.silence_seconds))
        limits = httpx.Limits(max_connections=512, max_keepalive_connections=32, keepalive_expiry=20.0)
        # The environment's proxies and .netrc are for other programs.
        self._client = httpx.AsyncClient(
            timeout=timeout, limits=limits, verify=tls or False, trust_env=False, follow_redirects=False
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def call(
        self,
        method: str,
        key: str | None,
        expected: Collection[int],
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
        silence_seconds: float | None = None,
    ) -> Answer:
        """Send a request until its status is expected. Every request may be repeated: content never changes."""
        attempts = Attempts(self.pace)
        deadline = _DEADLINE * (silence_seconds or self.pace.silence_seconds)
        while True:
            try:
                async with (
                    # A request with a body may take long if the store accepts it slowly.
                    asyncio.timeout(None if body else deadline),
                    self.stream(method, key, query, headers, body, silence_seconds) as response,
                    asyncio.timeout(deadline),
                ):
                    answer = Answer(response.status_code, response.headers, await _read(response))
            except (httpx.TransportError, TimeoutError) as error:
                failure: StoreUnavailable | StoreFull = StoreUnavailable()
                problem = f"{method} {self._shown(key)} at {self.location.endpoint}: {type(error).__name__} {error}"
                failure.__cause__ = StoreProblem(problem)
                may_pass = not isinstance(error, httpx.PoolTimeout)
            else:
                # A failure may follow after the status was sent.
                failed_late = answer.status == 200 and answer.error.code
                if answer.status in expected and not failed_late:
                    return answer
                failure, may_pass = self.failure(method, key, answer), self.may_pass(answer)
            if not may_pass or not await attempts.again():
                raise failure
            log.info("repeated: %s", failure.__cause__)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        key: str | None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
        silence_seconds: float | None = None,
    ) -> AsyncGenerator[httpx.Response, None]:
        """Send a request once; the body of the response is not read yet."""
        address, query = self.location.address(key), query or {}
        lengths = {"content-length": str(body.size)} if body is not None else {}
        digest = body.digest if body else EMPTY_DIGEST
        signed = self.signer.headers(method, address, query, {**(headers or {}), **lengths}, digest, self.clock())
        # A compressed answer would have another length.
        sent = {**signed, "accept-encoding": "identity", "user-agent": "hubgate"}
        content = body.parts() if body is not None else None
        timeout = httpx.USE_CLIENT_DEFAULT if silence_seconds is None else httpx.Timeout(silence_seconds)
        async with self._client.stream(
            method, address.url(encoded(query)), headers=sent, content=content, timeout=timeout
        ) as response:
            yield response

    async def fetch(self, link: str) -> Answer:
        """Get a signed link, as clients do; httpx.HTTPError if it cannot be reached."""
        async with self._client.stream("GET", link, headers={"accept-encoding": "identity"}) as response:
            return Answer(response.status_code, response.headers, await _read(response))

    def may_pass(self, answer: Answer) -> bool:
        return answer.status in _RETRIED_STATUSES or answer.error.code in _RETRIED_CODES

    def failure(self, method: str, key: str | None, answer: Answer) -> StoreUnavailable | StoreFull:
        error = answer.error
        detail = f"{answer.status} {error.code} {error.message}".rstrip()
        problem = StoreProblem(f"{method} {self._shown(key)}: {detail}"[:500])
        found: StoreUnavailable | StoreFull
        if answer.status == 507 or error.code in _FULL_CODES:
            found = StoreFull()
        elif (300 <= answer.status < 500 or answer.status == 501) and not self.may_pass(answer):
            found = StoreRefused()
        else:
            found = StoreUnavailable()
        found.__cause__ = problem
        return found

    def _shown(self, key: str | None) -> str:
        return self.location.name if key is None else f"{self.location.name}/{key}"


async def _read(response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw(_CHUNK):
        body += chunk
        if len(body) > _LONGEST_ANSWER:
            raise httpx.RemoteProtocolError("the answer is too long")
    return bytes(body)
