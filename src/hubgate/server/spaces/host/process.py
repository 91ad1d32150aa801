"""The process that runs Spaces: leases Spaces, and hands them their state and their requests."""

import asyncio
import contextlib
import logging
from functools import partial

from hubgate.server.clock import SECOND
from hubgate.server.errors import HubError
from hubgate.server.spaces.host import leases_store as store
from hubgate.server.spaces.host.context import HostContext
from hubgate.server.spaces.host.hosted_space import HostedSpace
from hubgate.server.spaces.host.leases import Leases, TakenOver
from hubgate.server.spaces.host.leases_store import Lease
from hubgate.server.spaces.hosting import CHANNEL
from hubgate.server.storage.signals import Signal, wait_for
from hubgate.server.webhooks.tunnels.channel import Receiving

log = logging.getLogger("hubgate.spaces")

CLEAN_SECONDS = 3600.0
WAITING_AFTER = 5 * SECOND
WAITING = (
    "It waits until another Space sleeps or is paused: the hub runs {running} Spaces at once on a machine, and "
    "{per_owner} of one owner."
)


class SpacesProcess:
    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._leases = Leases(context.spaces.db, context.folder / "processes", context.pace.dead_after)
        self._spaces: dict[str, HostedSpace] = {}
        self._woken = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Run Spaces until `stop` is set, then stop their apps. Another process, or the next one, starts them again."""
        context = self._context
        await context.runner.sweep()
        await self._leases.start()
        listening = await context.spaces.db.listen(self._on_signal)
        waiting = asyncio.create_task(stop.wait())
        waiting.add_done_callback(lambda _: self._woken.set())
        beside = [asyncio.create_task(self._watch_lease()), asyncio.create_task(self._delete_unused_packages())]
        try:
            while not stop.is_set():
                await self._step_safely()
                await wait_for(self._woken, context.pace.poll)
        finally:
            waiting.cancel()
            for task in beside:
                task.cancel()
            await listening.close()
            await self._stop_all()
            with contextlib.suppress(HubError):
                await self._leases.end()
            await context.runner.close()

    def _on_signal(self, signal: Signal) -> None:
        if signal is Signal.SPACES:
            self._woken.set()

    async def _step_safely(self) -> None:
        try:
            await self._step()
        except TakenOver:
            log.warning("other processes run the Spaces of this one; it starts again")
            await self._stop_all()
            await self._leases.start()
        except Exception:
            log.exception("Spaces could not be updated, which will be retried")

    async def _watch_lease(self) -> None:
        """End all apps before another process starts them, also while the database does not respond."""
        while True:
            await asyncio.sleep(self._context.pace.poll)
            if self._leases.must_stop and self._spaces:
                log.warning("the database does not respond; Spaces are stopped, because another process may start them")
                spaces, self._spaces = list(self._spaces.values()), {}
                await asyncio.gather(*(each.abandon() for each in spaces), return_exceptions=True)

    async def _step(self) -> None:
        await self._leases.beat()
        await self._claim()
        await self._explain_waiting()
        rows = {row.repo_id: row for row in await store.leased(self._context.spaces.db, self._leases.id)}
        for repo_id, row in rows.items():
            found = self._spaces.get(repo_id)
            if found is None:
                # Its app ended while the database did not respond. It starts again with a new lease.
                await self._context.spaces.db.write(partial(store.release, lease=Lease(repo_id, self._leases.id)))
                self._woken.set()
            else:
                found.update(row)
        for repo_id in set(self._spaces) - set(rows):
            self._spaces[repo_id].update(None)
        # A Space that is done has released its lease, and may be leased again.
        self._spaces = {repo_id: each for repo_id, each in self._spaces.items() if not each.is_done}
        await self._take_requests()

    async def _delete_unused_packages(self) -> None:
        """Delete the packages of deleted Spaces, every hour."""
        while True:
            try:
                await self._context.runner.retain(await self._context.spaces.db.read_long(store.all_ids))
            except Exception:
                log.exception("packages of deleted Spaces could not be deleted, which will be retried")
            await asyncio.sleep(CLEAN_SECONDS)

    async def _claim(self) -> None:
        context = self._context
        while len(self._spaces) < context.max_running:
            if not await store.has_claimable(context.spaces.db, context.max_per_owner):
                return
            claim = partial(store.claim, process=self._leases.id, per_owner=context.max_per_owner)
            repo_id = await context.spaces.db.write(claim)
            if repo_id is None:
                return
            if repo_id in self._spaces:
                # It has just released its lease; its sandbox has ended.
                await self._spaces.pop(repo_id).stop()
            for row in await store.leased(context.spaces.db, self._leases.id):
                # Without it, the Space has been deleted since.
                if row.repo_id == repo_id:
                    self._spaces[repo_id] = HostedSpace(context, row, self._leases.id)

    async def _explain_waiting(self) -> None:
        """Tell the owners of Spaces that no process has leased for a while that there is no room for them."""
        context, spaces = self._context, self._context.spaces
        before = spaces.clock() - WAITING_AFTER
        if await store.has_unexplained(spaces.db, before):
            message = WAITING.format(running=context.max_running, per_owner=context.max_per_owner)
            await spaces.db.write(lambda tx: store.explain_waiting(tx, message, before))

    async def _take_requests(self) -> None:
        spaces = self._context.spaces
        receiving = Receiving(spaces.db, spaces.clock, spaces.secret, self._leases.id, CHANNEL)
        while taken := await receiving.take():
            for request in taken:
                if found := self._spaces.get(request.receiver_id):
                    found.serve(request, receiving)

    async def _stop_all(self) -> None:
        spaces, self._spaces = list(self._spaces.values()), {}
        await asyncio.gather(*(each.stop() for each in spaces), return_exceptions=True)
