"""Fetches metadata documents: one fetch for concurrent callers, cached by HTTP headers; errors are not cached."""

import asyncio
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import partial
from urllib.parse import urlsplit

from msgspec import Struct, field

from hubgate.server.accounts.limits import network_of
from hubgate.server.clock import HOUR, MINUTE, SECOND, Clock
from hubgate.server.egress.client import Egress
from hubgate.server.egress.connection import HttpResponse
from hubgate.server.egress.resolve import Unreachable
from hubgate.server.egress.target import AddressNotAllowed, parse_target
from hubgate.server.errors import BadRequest, TooManyRequests
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.cimd import store
from hubgate.server.oauth.cimd.rules import Finding, check_address, check_document, check_response, development_hint
from hubgate.server.oauth.redirects import host_of
from hubgate.server.storage.database import Database
from hubgate.server.throttle.rate_limiter import Limit, Limiter

FETCH_SECONDS = 5.0
# The lease of a process that fetches; if the process dies, others wait no longer than this.
LEASE = 7 * SECOND
WAIT_SECONDS = 0.1
MAX_WAITS = 100
FETCHES_OF_HOST = Limit("cimd host", 10, 60, "Too many fetches from this host. Wait {duration}.")
FETCHES_FOR_CALLER = Limit("cimd caller", 30, 60, "Too many fetches of app documents. Wait {duration}.")

# Bounds of the cache lifetime that headers set, and the default.
SHORTEST_CACHE, LONGEST_CACHE, DEFAULT_CACHE = 5 * MINUTE, 24 * HOUR, HOUR
# How long an expired copy is still used when a fetch fails: the app survives an outage of its host, and a stranger who
# exhausts the host's fetch limit.
STALE_IF_ERROR = 24 * HOUR


class InvalidDocument(BadRequest):
    """The document cannot be used; the message names the first broken rule. `client_id` is the document's URL."""

    def __init__(self, client_id: str, message: str) -> None:
        super().__init__(message)
        self.client_id = client_id


class DocumentUnavailable(InvalidDocument):
    """The document could not be fetched, so it may be valid or not."""


class Documents(Struct, frozen=True):
    db: Database
    clock: Clock
    limiter: Limiter
    egress: Egress
    max_bytes: int
    http_loopback: bool
    _fetching: dict[str, asyncio.Task[App]] = field(default_factory=dict)

    def is_document_url(self, client_id: str) -> bool:
        return client_id.startswith("https://") or (self.http_loopback and client_id.startswith("http://"))

    async def app(self, url: str, *, caller: str) -> App:
        """The app that the document describes, from the cache until the cached copy expires."""
        _require(url, check_address(url, http_loopback=self.http_loopback))
        now = self.clock()
        document, expires_at = await store.find(self.db, url) or ("", 0)
        _, cached = check_document(url, document.encode())
        if cached is not None and now < expires_at:
            return cached
        try:
            return await self._shared_fetch(url, caller)
        except (DocumentUnavailable, TooManyRequests):
            if cached is not None and now < expires_at + STALE_IF_ERROR:
                return cached
            raise

    async def _shared_fetch(self, url: str, caller: str) -> App:
        """Fetch the document once for all concurrent callers (attack O31)."""
        while True:
            task = self._fetching.get(url)
            is_own = task is None
            if task is None:
                task = self._fetching[url] = asyncio.create_task(self._fetch_or_wait(url, caller))
                task.add_done_callback(lambda _: self._fetching.pop(url, None))
            try:
                # A cancelled caller must not cancel the fetch for the others.
                return await asyncio.shield(task)
            except TooManyRequests:
                # The limit was that of the caller who started the task; try again with our own.
                if is_own:
                    raise

    async def examine(self, url: str, *, caller: str) -> list[Finding]:
        """Check every rule, for the developer's page. Nothing is stored."""
        findings = check_address(url, http_loopback=self.http_loopback)
        if not all(finding.passed for finding in findings):
            return findings
        await self.limiter.take(FETCHES_FOR_CALLER, network_of(caller))
        try:
            response = await self._get(url)
        except (Unreachable, AddressNotAllowed) as error:
            fix = f"Make it reachable from this hub.{development_hint(host_of(urlsplit(url)))}"
            return [*findings, Finding("The hub can fetch the document", str(error), fix)]
        findings += check_response(response)
        if all(finding.passed for finding in findings):
            findings += check_document(url, response.body)[0]
        return findings

    async def _fetch_or_wait(self, url: str, caller: str) -> App:
        """Fetch in this process, or wait for another process that is fetching already."""
        for _ in range(MAX_WAITS):
            now = self.clock()
            if await self.db.write(partial(store.claim, client_id=url, now=now, until=now + LEASE)):
                return await self._fetch_with_lease(url, caller)
            await asyncio.sleep(WAIT_SECONDS)
            if app := await self._cached_app(url, now):
                return app
        raise DocumentUnavailable(url, "The app's document could not be fetched in time.")

    async def _cached_app(self, url: str, now: int) -> App | None:
        """The cached app; None once it has to be fetched again."""
        document, expires_at = await store.find(self.db, url) or ("", 0)
        return check_document(url, document.encode())[1] if now < expires_at else None

    async def _fetch_with_lease(self, url: str, caller: str) -> App:
        try:
            # The previous lease owner may have saved the document since we looked.
            return await self._cached_app(url, self.clock()) or await self._fetch_and_save(url, caller)
        finally:
            await self.db.write(partial(store.release, client_id=url))

    async def _fetch_and_save(self, url: str, caller: str) -> App:
        await self.limiter.take(FETCHES_FOR_CALLER, network_of(caller))
        try:
            response = await self._get(url)
        except (Unreachable, AddressNotAllowed) as error:
            raise DocumentUnavailable(url, f"The app's document could not be fetched: {error}") from error
        if response.status >= 500:
            raise DocumentUnavailable(
                url, f"The app's document could not be fetched: its host answered {response.status}."
            )
        _require(url, check_response(response))
        findings, app = check_document(url, response.body)
        _require(url, findings)
        if app is None:
            raise InvalidDocument(url, "The app's document is not valid.")
        now = self.clock()
        document = response.body.decode()
        expires_at = now + cache_lifetime(response)
        await self.db.write(lambda tx: store.save(tx, url, document, now, expires_at))
        return app

    async def _get(self, url: str) -> HttpResponse:
        # Counted by host name only: another port or spelling is the same host (attack O63).
        await self.limiter.take(FETCHES_OF_HOST, parse_target(url).host)
        return await self.egress.get(url, _HEADERS, seconds=FETCH_SECONDS, cap=self.max_bytes)


_HEADERS: Mapping[str, str] = {"Accept": "application/json", "User-Agent": "hubgate"}


def cache_lifetime(response: HttpResponse) -> int:
    """The cache lifetime, from Cache-Control or Expires, within bounds.

    Even no-store is cached for the minimum: one sign-in needs the document several times.
    """
    control = ", ".join(value.lower() for name, value in response.headers if name == "cache-control")
    if "no-store" in control or "no-cache" in control:
        return SHORTEST_CACHE
    age = re.search(r"\bmax-age\s*=\s*\"?([0-9]{1,9})", control)
    lifetime = int(age.group(1)) * SECOND if age else _lifetime_from_expires(response)
    return min(max(lifetime, SHORTEST_CACHE), LONGEST_CACHE)


def _lifetime_from_expires(response: HttpResponse) -> int:
    """RFC 9111, section 5.3: Expires minus the response's own Date; an invalid date means expired."""
    expires, date = response.header("expires"), response.header("date")
    if expires is None:
        return DEFAULT_CACHE
    try:
        until, since = parsedate_to_datetime(expires), parsedate_to_datetime(date or "")
        return int((until - since).total_seconds()) * SECOND
    except (TypeError, ValueError, OverflowError):
        return 0


def _require(url: str, findings: list[Finding]) -> None:
    for finding in findings:
        if not finding.passed:
            raise InvalidDocument(url, f"The app's document breaks the rule '{finding.rule}'. {finding.fix}")
