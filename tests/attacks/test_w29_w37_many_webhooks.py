"""W29, W37: many webhooks on one victim, and a thousand receivers that hang."""

import asyncio
import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace
from tests.bed.egress_hub import LONG, OK, EgressHub, deliver, run_egress_hub
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import until
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import create_webhook
from tests.egress.farend import answering, read_request, serving

from hubgate.server.egress.client import MAX_PER_ADDRESS
from hubgate.server.ids import new_id
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.delivering.deliverer import Deliverer
from hubgate.server.webhooks.fanout.fanning import FanOut
from hubgate.server.webhooks.sealed_secrets import new_key

HANGING = 1000
# Later than by default: on a busy machine it takes a while until all of them hang.
DEADLINE = 100.0


@dataclass
class Victim:
    """Counts concurrent requests, and answers none of them until told to."""

    limit: int = 0
    requests: int = 0
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    answers: threading.Event = field(default_factory=threading.Event)

    def __call__(self, peer: socket.socket) -> None:
        while read_request(peer):
            with self._lock:
                self.requests += 1
                self._now += 1
                self.limit = max(self.limit, self._now)
            self.answers.wait(60)
            with self._lock:
                self._now -= 1
            peer.sendall(OK)


def test_w29_concurrent_requests_to_one_address_are_limited(sqlite_template: Path, tmp_path: Path) -> None:
    """From several users, by several names, on two ports: the address counts.

    Deliveries beyond the limit wait without an attempt.
    """
    victim = Victim()
    names = {f"n{number}.example": [["127.0.0.1"]] for number in range(4)} | {"mapped.example": [["::ffff:127.0.0.1"]]}
    with (
        serving(victim) as one,
        serving(victim) as two,
        serving(answering(OK), "127.0.0.9") as other,
        run_egress_hub(sqlite_template, tmp_path, names) as here,  # type: ignore[arg-type]
    ):
        hosts = [f"{host}:{port}" for host in names for port in (one.port, two.port)]
        urls = [f"http://{hosts[number % len(hosts)]}/{number}" for number in range(80)]
        with api(here.hub, create_token(here.hub, create_user(here.hub, "eve"))) as eve:
            webhooks = here.watch(*urls[:40])
            theirs = [create_webhook(eve, url, "user:ada") for url in urls[40:]]
            (apart,) = here.watch(f"http://127.0.0.9:{other.port}/")
            here.change()
            with working(here.hub, LONG):
                until(lambda: victim.requests == MAX_PER_ADDRESS)
                # The others have waited as long as they may.
                until(lambda: here.hub.call(ended_waits) == len(urls) - MAX_PER_ADDRESS)
                victim.answers.set()
            assert (victim.requests, victim.limit) == (MAX_PER_ADDRESS, MAX_PER_ADDRESS)
            logs = [here.last_delivery(webhook) for webhook in webhooks]
            logs += [EgressHub(here.hub, here.names, eve).last_delivery(webhook) for webhook in theirs]
            waiting = [log for log in logs if log["state"] == "pending"]
            assert len(waiting) == len(urls) - MAX_PER_ADDRESS
            assert all(log["attempts"] == 0 and log["tries"] == [] for log in waiting)
            assert here.last_delivery(apart)["state"] == "delivered"
            here.hub.clock.advance(seconds=4)
            assert deliver(here.hub, LONG) == len(waiting)
            assert (victim.requests, victim.limit) == (80, MAX_PER_ADDRESS)


async def ended_waits(opened: Hub) -> int:
    """How many requests have waited for a slot of the victim's address in vain."""
    turns = opened.egress._slots._waiting.get("127.0.0.1", ())
    return sum(turn.done() for turn in turns)


@contextlib.contextmanager
def hanging_receivers() -> Iterator[int]:
    """On all loopback addresses: accepts connections, reads, never answers."""
    listener = socket.create_server(("0.0.0.0", 0), backlog=4096)
    listener.setblocking(False)
    waiting, over = selectors.DefaultSelector(), threading.Event()
    waiting.register(listener, selectors.EVENT_READ)
    taken: list[socket.socket] = []

    def work() -> None:
        while not over.is_set():
            for key, _ in waiting.select(0.1):
                if key.fileobj is listener:
                    with contextlib.suppress(OSError):
                        peer, _ = listener.accept()
                        taken.append(peer)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        over.set()
        thread.join(60)
        waiting.close()
        for peer in taken:
            peer.close()
        listener.close()


def copied(hub: RunningHub, webhook: dict[str, str], urls: list[str]) -> None:
    """Copies of this webhook with these addresses."""

    async def work(opened: Hub) -> None:
        async def unit(tx: Tx) -> None:
            row = await tx.one("SELECT * FROM webhooks WHERE id = :id", {"id": webhook["id"]})
            watch = await tx.one("SELECT * FROM watches WHERE webhook_id = :id", {"id": webhook["id"]})
            assert row is not None
            assert watch is not None
            for url in urls:
                new = new_id(opened.clock())
                private, public = new_key(opened.secret, new)
                own = {**dict(row), "id": new, "url": url, "private_key": private, "public_key": public}
                for table, kept in (("webhooks", own), ("watches", {**dict(watch), "webhook_id": new})):
                    columns = ", ".join(kept)
                    places = ", ".join(f":{name}" for name in kept)
                    await tx.exec(f"INSERT INTO {table} ({columns}) VALUES ({places})", kept)

        await opened.db.write_long(unit)

    hub.call(work)


def test_w37_a_thousand_hanging_receivers_delay_nobody(engine: Engine, tmp_path: Path) -> None:
    """Every delivery to a healthy receiver is received before the first hanging one reaches its deadline."""
    arrived: list[float] = []

    def behave(peer: socket.socket) -> None:
        while read_request(peer):
            arrived.append(time.monotonic())
            peer.sendall(OK)

    settings = settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8", webhooks_per_owner="2000")
    with (
        hanging_receivers() as port,
        serving(behave) as server,
        run_hub(settings) as hub,
        api(hub, create_token(hub, create_user(hub, "ada"))) as ada,
    ):
        first = create_webhook(ada, f"http://127.1.0.1:{port}/", "user:ada")
        copied(hub, first, [f"http://127.1.{n // 200}.{2 + n % 200}:{port}/" for n in range(HANGING - 1)])
        healthy = [create_webhook(ada, f"http://127.0.0.1:{server.port}/{number}", "user:ada") for number in range(5)]
        for number in range(2):
            create_repo(ada, f"r{number}")
        began, deadline = time.monotonic(), DEADLINE
        with working(hub, deadline):
            until(lambda: len(arrived) == 2 * len(healthy), seconds=deadline)
        assert max(arrived) - began < deadline


@contextlib.contextmanager
def working(hub: RunningHub, deadline: float) -> Iterator[None]:
    """The fan-out and the sender, as the background process runs them."""
    stop: list[asyncio.Event] = []

    async def begin(opened: Hub) -> "asyncio.Task[None]":
        webhooks = replace(opened.webhooks, pace=replace(opened.webhooks.pace, deadline_seconds=deadline))
        stop.append(asyncio.Event())

        async def fan_out() -> None:
            while not stop[0].is_set():
                if not await FanOut(webhooks).step():
                    await asyncio.sleep(0.02)

        async def both() -> None:
            await asyncio.gather(fan_out(), Deliverer(webhooks, stop[0]).run())

        return asyncio.create_task(both())

    task = hub.call(begin)
    try:
        yield
    finally:

        async def end(_: Hub) -> None:
            stop[0].set()
            await task

        hub.call(end)
