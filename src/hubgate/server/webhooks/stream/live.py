"""Live streams of a web process: wakes them when what they follow has new entries, and lets them share reads.

A stream follows a webhook, whose entries are its deliveries, or a log of a Space. One task looks up the latest numbers
of everything that is followed, after a signal of another process and once a second. A thousand streams of one webhook
cost one look-up and one read for each event, and one check for each of their tokens.
"""

import asyncio
import contextlib
import contextvars
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from msgspec import Struct

from hubgate.server.errors import HubError, Unavailable
from hubgate.server.storage.database import Database
from hubgate.server.storage.signals import Signal

log = logging.getLogger("hubgate.streams")

# Between two look-ups under load.
SHORTEST_PAUSE_SECONDS = 0.02
# Streams share a read, and a check of their token, for this long: when an event is sent, these are not older (attacks
# W31 and O44).
SHARED_SECONDS = 0.1
T = TypeVar("T")
TOO_MANY = "Too many live streams at once. Try again later."

# Looks up the latest numbers by id. What no longer exists is left out.
Latest = Callable[[Database, Collection[str]], Awaitable[Mapping[str, int]]]


class Part(Struct, frozen=True):
    """The next part of a stream, encoded, and the cursor after it. Without new events, `data` is empty."""

    data: bytes
    cursor: int


@dataclass(eq=False)
class Stream:
    """A live stream of one client."""

    followed_id: str
    user: str
    # The latest known number of what it follows.
    latest: int = 0
    # The client has disconnected, the webhook or Space was deleted, or the process stops.
    has_ended: bool = False
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def advance(self, latest: int) -> None:
        if latest > self.latest:
            self.latest = latest
            self._wake.set()

    def end(self) -> None:
        self.has_ended = True
        self._wake.set()

    async def wait(self, cursor: int, seconds: float) -> None:
        """Wait until there is an entry after `cursor` or the stream has ended, but not longer than `seconds`."""
        self._wake.clear()
        if self.latest <= cursor and not self.has_ended:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._wake.wait()


@dataclass(eq=False)
class LiveStreams:
    db: Database
    find_latest: Latest
    # Those that may announce new entries.
    signals: Collection[Signal]
    # Streams of this process, in all and for one user.
    limit: int
    limit_per_user: int
    # The interval of comments, by which both sides see that the connection works.
    comment_seconds: float
    # A client that reads nothing for this long is disconnected: its part of the stream waits in memory.
    stall_seconds: float
    _streams: dict[str, set[Stream]] = field(default_factory=dict)
    _users: Counter[str] = field(default_factory=Counter)
    _reads: "dict[object, asyncio.Task[Part]]" = field(default_factory=dict)
    _checks: "dict[object, asyncio.Task[Any]]" = field(default_factory=dict)
    _hint: asyncio.Event = field(default_factory=asyncio.Event)
    _is_stopping: bool = False
    _looking: "asyncio.Task[None] | None" = None

    @contextlib.contextmanager
    def follow(self, followed_id: str, user: str) -> Iterator[Stream]:
        """Begin a stream; Unavailable if there are too many."""
        if self._is_stopping:
            raise Unavailable("The hub is restarting. Try again shortly.")
        if self.count >= self.limit or self._users[user] >= self.limit_per_user:
            raise Unavailable(TOO_MANY, retry_after=30)
        stream = Stream(followed_id, user)
        self._streams.setdefault(followed_id, set()).add(stream)
        self._users[user] += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_regularly(), context=contextvars.Context())
        self._hint.set()
        try:
            yield stream
        finally:
            self._remove(stream)

    def _remove(self, stream: Stream) -> None:
        streams = self._streams[stream.followed_id]
        streams.discard(stream)
        if not streams:
            del self._streams[stream.followed_id]
        self._users[stream.user] -= 1
        if not self._users[stream.user]:
            del self._users[stream.user]
        if not self._streams and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    @property
    def count(self) -> int:
        """The number of open streams."""
        return self._users.total()

    def stop(self) -> None:
        """End all streams: the process stops, and would otherwise wait for them."""
        self._is_stopping = True
        for streams in self._streams.values():
            for stream in streams:
                stream.end()

    async def shared(self, key: object, read: Callable[[], Coroutine[Any, Any, Part]]) -> Part:
        """The result of a read that all streams with this key share."""
        task = self._reads.get(key)
        if task is None:
            # In an empty context: the first stream's client may disconnect, which must not end the read of the others.
            task = self._reads[key] = asyncio.create_task(read(), context=contextvars.Context())
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(task)

    def _forget(self, key: object, done: "asyncio.Task[Part]") -> None:
        # Also retrieves the exception: asyncio would log it if no stream is left that awaits the task.
        if done.cancelled() or done.exception() is not None or not done.result().data:
            self._reads.pop(key, None)
        else:
            asyncio.get_running_loop().call_later(SHARED_SECONDS, self._reads.pop, key, None)

    async def shared_check(self, stream: Stream, key: object, check: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of a check that streams of one webhook with the same `key` share. It began after the latest event
        was known, so that nothing is sent of what happens after a permission is revoked.
        """
        of_latest = (stream.followed_id, stream.latest, key)
        task = self._checks.get(of_latest)
        if task is None:
            task = self._checks[of_latest] = asyncio.create_task(check(), context=contextvars.Context())
            # asyncio would log an exception that no stream is left to await.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            # From its begin: a slow check must not be shared for longer.
            asyncio.get_running_loop().call_later(SHARED_SECONDS, self._checks.pop, of_latest, None)
        return await asyncio.shield(task)

    async def _look_regularly(self) -> None:
        listening = await self.db.listen(self._on_signal)
        try:
            while True:
                self._hint.clear()
                try:
                    await self._look()
                except HubError:
                    # The database is unavailable; streams notice that themselves.
                    pass
                except Exception:
                    log.exception("looking for new entries of live streams failed and will be retried")
                await asyncio.sleep(SHORTEST_PAUSE_SECONDS)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self.db.poll_seconds):
                        await self._hint.wait()
        finally:
            await listening.close()

    def _on_signal(self, signal: Signal) -> None:
        if signal in self.signals:
            self._hint.set()

    async def _look(self) -> None:
        followed = list(self._streams)
        found = await self.find_latest(self.db, followed)
        for followed_id in followed:
            for stream in self._streams.get(followed_id, ()):
                if followed_id in found:
                    stream.advance(found[followed_id])
                else:
                    stream.end()
