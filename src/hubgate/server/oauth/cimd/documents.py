"""Fetching a metadata document: once for all who want it at the same time, kept by its headers, errors never kept."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from urllib.parse import urlsplit

from hubgate.server.accounts.limits import network_of
from hubgate.server.clock import HOUR, MINUTE, SECOND, Clock
from hubgate.server.egress.client import Egress
from hubgate.server.egress.exchange import Answer
from hubgate.server.egress.resolve import NotReached
from hubgate.server.egress.target import AddressRefused, parse_target
from hubgate.server.errors import BadRequest, TooManyRequests
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.cimd import store
from hubgate.server.oauth.cimd.rules import Finding, check_address, check_answer, check_document, in_development
from hubgate.server.oauth.redirects import host_of
from hubgate.server.storage.database import Database
from hubgate.server.throttle.limiter import Limit, Limiter

FETCH_SECONDS = 5.0
# Another process that fetches is waited for; one that died over it holds nobody up for longer than this.
CLAIMED_FOR = 7 * SECOND
WAIT_SECONDS = 0.1
WAITS = 100
FETCHES_OF_HOST = Limit("cimd host", 10, 60, "Too many fetches from this host. Wait {minutes}.")
FETCHES_FOR_CALLER = Limit("cimd caller", 30, 60, "Too many apps at once. Wait {minutes}.")

# What headers ask for is kept within these.
KEPT_AT_LEAST, KEPT_AT_MOST, KEPT_OTHERWISE = 5 * MINUTE, 24 * HOUR, HOUR
# How long the last good copy does where a new one cannot be had: neither a broken host nor a stranger who uses up the
# host's share of fetches takes the app out of service.
STANDS_IN_FOR = 24 * HOUR


class DocumentRefused(BadRequest):
    """Carries the first rule that does not hold; `client_id` is the document's address."""

    def __init__(self, client_id: str, message: str) -> None:
        super().__init__(message)
        self.client_id = client_id


class NotAnswered(DocumentRefused):
    """Nothing is known about the document now, good or bad."""


@dataclass(frozen=True)
class Documents:
    db: Database
    clock: Clock
    limiter: Limiter
    egress: Egress
    most_bytes: int
    http_loopback: bool
    _fetching: dict[str, asyncio.Task[App]] = field(default_factory=dict)

    def is_address(self, client_id: str) -> bool:
        return client_id.startswith("https://") or (self.http_loopback and client_id.startswith("http://"))

    async def app(self, url: str, *, caller: str) -> App:
        """The app that the document describes now, or as it was a permitted while ago."""
        _require(url, check_address(url, http_loopback=self.http_loopback))
        now = self.clock()
        document, expires_at = await store.find(self.db, url) or ("", 0)
        _, kept = check_document(url, document.encode())
        if kept is not None and now < expires_at:
            return kept
        try:
            return await self._shared_fetch(url, caller)
        except (NotAnswered, TooManyRequests):
            if kept is not None and now < expires_at + STANDS_IN_FOR:
                return kept
            raise

    async def _shared_fetch(self, url: str, caller: str) -> App:
        """One fetch for all who want the document now (attack O31)."""
        while True:
            task = self._fetching.get(url)
            is_own = task is None
            if task is None:
                task = self._fetching[url] = asyncio.create_task(self._fetched(url, caller))
                task.add_done_callback(lambda _: self._fetching.pop(url, None))
            try:
                # One caller's end must not end the fetch for the others.
                return await asyncio.shield(task)
            except TooManyRequests:
                # Whoever began it had used up their share; that says nothing about ours.
                if is_own:
                    raise

    async def examine(self, url: str, *, caller: str) -> list[Finding]:
        """Every rule with what was found, for the developer's page. Nothing is kept."""
        findings = check_address(url, http_loopback=self.http_loopback)
        if not all(finding.holds for finding in findings):
            return findings
        await self.limiter.take(FETCHES_FOR_CALLER, network_of(caller))
        try:
            answer = await self._get(url)
        except (NotReached, AddressRefused) as error:
            cure = f"Make it reachable from this hub.{in_development(host_of(urlsplit(url)))}"
            return [*findings, Finding("The hub can fetch it", str(error), cure)]
        findings += check_answer(answer)
        if all(finding.holds for finding in findings):
            findings += check_document(url, answer.body)[0]
        return findings

    async def _fetched(self, url: str, caller: str) -> App:
        """By this process, or by another one that is at it already."""
        for _ in range(WAITS):
            now = self.clock()
            if await self.db.write(partial(store.claim, client_id=url, now=now, until=now + CLAIMED_FOR)):
                return await self._fetched_here(url, caller)
            await asyncio.sleep(WAIT_SECONDS)
            if app := await self._fresh(url, now):
                return app
        raise NotAnswered(url, "The app's document could not be fetched in time.")

    async def _fresh(self, url: str, now: int) -> App | None:
        """What is kept, while it need not be fetched again."""
        document, expires_at = await store.find(self.db, url) or ("", 0)
        return check_document(url, document.encode())[1] if now < expires_at else None

    async def _fetched_here(self, url: str, caller: str) -> App:
        try:
            # Whoever was at it before our turn may have saved it since we looked.
            return await self._fresh(url, self.clock()) or await self._fetch(url, caller)
        finally:
            await self.db.write(partial(store.release, client_id=url))

    async def _fetch(self, url: str, caller: str) -> App:
        await self.limiter.take(FETCHES_FOR_CALLER, network_of(caller))
        try:
            answer = await self._get(url)
        except (NotReached, AddressRefused) as error:
            raise NotAnswered(url, f"The app's document could not be fetched: {error}") from error
        if answer.status >= 500:
            raise NotAnswered(url, f"The app's document could not be fetched: its host answered {answer.status}.")
        _require(url, check_answer(answer))
        findings, app = check_document(url, answer.body)
        _require(url, findings)
        if app is None:
            raise DocumentRefused(url, "The app's document was not understood.")
        now = self.clock()
        document = answer.body.decode()
        expires_at = now + kept_for(answer)
        await self.db.write(lambda tx: store.save(tx, url, document, now, expires_at))
        return app

    async def _get(self, url: str) -> Answer:
        # By its name alone: another port or spelling is the same host (attack O63).
        await self.limiter.take(FETCHES_OF_HOST, parse_target(url).host)
        return await self.egress.get(url, _HEADERS, seconds=FETCH_SECONDS, cap=self.most_bytes)


_HEADERS: Mapping[str, str] = {"Accept": "application/json", "User-Agent": "hubgate"}


def kept_for(answer: Answer) -> int:
    """From Cache-Control, within bounds; what must not be kept is kept for the shortest time, so that one sign-in,
    which asks several times, does not fetch several times."""
    control = ", ".join(value.lower() for name, value in answer.headers if name == "cache-control")
    if "no-store" in control or "no-cache" in control:
        return KEPT_AT_LEAST
    age = re.search(r"\bmax-age\s*=\s*\"?([0-9]{1,9})", control)
    asked = int(age.group(1)) * SECOND if age else _until_expires(answer)
    return min(max(asked, KEPT_AT_LEAST), KEPT_AT_MOST)


def _until_expires(answer: Answer) -> int:
    """RFC 9111, section 5.3: counted from the answer's own Date; a value that is no date is one long past."""
    expires, date = answer.header("expires"), answer.header("date")
    if expires is None:
        return KEPT_OTHERWISE
    try:
        until, since = parsedate_to_datetime(expires), parsedate_to_datetime(date or "")
        return int((until - since).total_seconds()) * SECOND
    except (TypeError, ValueError, OverflowError):
        return 0


def _require(url: str, findings: list[Finding]) -> None:
    for finding in findings:
        if not finding.holds:
            raise DocumentRefused(url, f"The app's document breaks a rule. {finding.rule}: {finding.cure}")
