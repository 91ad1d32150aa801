"""The life of one Space that this process has leased: builds, starts, replaces, restarts, and lets it sleep."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from hubgate.server.clock import SECOND
from hubgate.server.errors import HubError
from hubgate.server.spaces.host import leases_store as store
from hubgate.server.spaces.host.configuration import Rejected
from hubgate.server.spaces.host.context import HostContext
from hubgate.server.spaces.host.leases_store import Lease
from hubgate.server.spaces.host.log_writer import LogWriter
from hubgate.server.spaces.host.notifications import notify_failed
from hubgate.server.spaces.host.requests import forward, not_running
from hubgate.server.spaces.host.startup import Crashed, Report, Startup
from hubgate.server.spaces.logs_store import RUN as RUN_LOG
from hubgate.server.spaces.model import ANSWER_SECONDS, RUN, Space, Stage
from hubgate.server.spaces.runner import Exit, Running
from hubgate.server.storage.database import Tx, Unit
from hubgate.server.webhooks.tunnels.channel import Receiving, TakenRequest

log = logging.getLogger("hubgate.spaces")

MAX_CRASHES = 5
_WHILE_SERVING = {
    Stage.BUILDING: Stage.RUNNING_BUILDING,
    Stage.APP_STARTING: Stage.RUNNING_APP_STARTING,
}


@dataclass(eq=False)
class ServingApp:
    running: Running
    version: int
    sha: str
    since: float = field(default_factory=time.monotonic)
    requests: set["asyncio.Task[None]"] = field(default_factory=set)
    cpu_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.ended: asyncio.Task[Exit] = asyncio.create_task(self.running.wait())


class HostedSpace:
    def __init__(self, context: HostContext, row: Space, process: str) -> None:
        self._context, self._row, self._lease = context, row, Lease(row.repo_id, process)
        spaces = context.spaces
        self._db, self._clock = spaces.db, spaces.clock
        self._logs = LogWriter(spaces.db, spaces.clock, row.repo_id)
        self._startup = Startup(context, row.repo_id, self._logs)
        self._changed = asyncio.Event()
        self._app: ServingApp | None = None
        # The version that this process tried last.
        self._tried: int | None = None
        self._failures = row.failures
        self._used_at = time.monotonic()
        # What the version that replaces another is doing.
        self._preparing = Stage.BUILDING
        self._stopping = asyncio.Event()
        self._is_abandoned = False
        self._task = asyncio.create_task(self._run())

    @property
    def is_done(self) -> bool:
        return self._task.done()

    def update(self, row: Space | None) -> None:
        """Take over the state that is stored now; None if this process has no lease any more."""
        if row is None:
            self._end_soon()
            return
        if row.version != self._row.version:
            # Also in the row.
            self._failures = 0
        if (row.version, row.wanted, row.sdk) != (self._row.version, self._row.wanted, self._row.sdk):
            self._changed.set()
        self._row = row

    def serve(self, request: TakenRequest, receiving: Receiving) -> None:
        """Forward a request to the app that serves now."""
        app = self._app
        work = self._serve(request, receiving, app)
        if app is None:
            self._startup.in_background(work)
        else:
            task = asyncio.create_task(work)
            app.requests.add(task)
            task.add_done_callback(app.requests.discard)

    async def stop(self) -> None:
        """Stop for the end of this process: the next one starts the app again."""
        self._end_soon()
        await self._task

    async def abandon(self) -> None:
        """End the app at once, without the database: another process may soon run it."""
        self._is_abandoned = True
        self._end_soon()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _end_soon(self) -> None:
        self._stopping.set()
        self._changed.set()

    @property
    def _is_wanted(self) -> bool:
        return not self._stopping.is_set() and self._row.wanted == RUN and self._row.sdk != ""

    async def _run(self) -> None:
        try:
            while self._is_wanted:
                self._changed.clear()
                if self._row.version != self._tried:
                    await self._replace(self._row)
                elif self._app is not None:
                    await self._watch(self._app, self._row)
                else:
                    break
        except Exception:
            log.exception("Space %s failed and will be started again", self._lease.repo_id)
        finally:
            await self._end()

    async def _end(self) -> None:
        app, self._app = self._app, None
        try:
            if not self._is_abandoned:
                # Before the app stops: a request must wait for the next one.
                with contextlib.suppress(Exception):
                    await self._db.write(lambda tx: store.set_running(tx, self._lease, None, None))
        finally:
            await self._end_app(app)
        if not self._is_abandoned:
            with contextlib.suppress(Exception):
                await self._logs.flush()
                await self._db.write(lambda tx: store.release(tx, self._lease))

    async def _end_app(self, app: ServingApp | None) -> None:
        try:
            try:
                if app is not None:
                    await self._retire(app)
            finally:
                if self._is_abandoned:
                    self._startup.cancel()
                await self._startup.close()
        except Exception:
            # The lease must end in all cases.
            log.exception("Space %s could not be stopped cleanly", self._lease.repo_id)

    async def _replace(self, row: Space) -> None:
        """Build and start a version. The app before it serves until the new one answers."""
        self._tried = row.version
        attempt = asyncio.create_task(self._startup.start(row, self._stage_reporter(row)))
        changed = asyncio.create_task(self._changed.wait())
        try:
            await self._until_any_done(row, attempt, changed)
            if not attempt.done():
                # Another version is wanted, or none.
                return
            running, sha = attempt.result()
            await self._switch(ServingApp(running, row.version, sha))
        except Rejected as error:
            await self._fail(row, error.stage, str(error))
        except Crashed as error:
            await self._on_crash(row, str(error))
        except HubError:
            # The database does not respond.
            raise
        except Exception:
            log.exception("the app of Space %s could not be started", self._lease.repo_id)
            await self._on_crash(row, "The hub could not start the app. Its operator finds the reason in the log.")
        finally:
            changed.cancel()
            attempt.cancel()
            outcome, _ = await asyncio.gather(attempt, changed, return_exceptions=True)
            if isinstance(outcome, tuple) and (self._app is None or self._app.running is not outcome[0]):
                # This was cancelled when the app had just begun to listen.
                await outcome[0].stop(0)

    async def _until_any_done(self, row: Space, *awaited: "asyncio.Task[Any]") -> None:
        """Wait until one of the tasks is done. If the app that serves ends before, requests wait for the next one."""
        while not any(each.done() for each in awaited):
            ended = [self._app.ended] if self._app else []
            await asyncio.wait([*awaited, *ended], return_when=asyncio.FIRST_COMPLETED)
            if self._app is not None and self._app.ended.done():
                reason, self._app = self._app.ended.result().reason, None
                self._logs.to(RUN_LOG)(f"hubgate: {reason}")
                await self._store_ended(row, self._preparing)

    async def _store_ended(self, row: Space, stage: Stage) -> None:
        async def unit(tx: Tx) -> None:
            await store.set_running(tx, self._lease, None, None)
            await store.report(tx, self._lease, row.version, stage, "", self._clock())

        await self._db.write(unit)

    async def _switch(self, app: ServingApp) -> None:
        before, self._app = self._app, app

        async def unit(tx: Tx) -> None:
            await store.set_running(tx, self._lease, app.version, app.sha)
            await store.report(tx, self._lease, app.version, Stage.RUNNING, "", self._clock())

        try:
            await self._db.write(unit)
        finally:
            # Also if that failed: nothing else stops it.
            if before is not None:
                self._startup.in_background(self._retire(before))

    async def _retire(self, app: ServingApp) -> None:
        """Stop an app when its last requests are answered. Sooner if this process stops, at once if it is cancelled."""
        pace = self._context.pace
        try:
            if app.requests:
                await self._wait_unless_stopping(app.requests, ANSWER_SECONDS)
            ending = asyncio.create_task(app.running.stop(pace.grace))
            await self._wait_unless_stopping([ending])
            await asyncio.wait([ending], timeout=pace.last_grace)
        finally:
            await app.running.stop(0)
        await asyncio.gather(app.ended, return_exceptions=True)

    async def _wait_unless_stopping(self, tasks: "Collection[asyncio.Task[Any]]", seconds: float | None = None) -> None:
        stopping = asyncio.create_task(self._stopping.wait())
        done = asyncio.create_task(asyncio.wait(set(tasks)))
        try:
            await asyncio.wait([done, stopping], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            done.cancel()
            stopping.cancel()

    async def _fail(self, row: Space, stage: Stage, message: str) -> None:
        self._logs.to(RUN_LOG)(f"hubgate: {message}")
        if self._app is not None:
            stage, message = Stage.RUNNING, f"{message} The version before it still serves."
        await self._db.write(lambda tx: store.report(tx, self._lease, row.version, stage, message, self._clock()))

    async def _watch(self, app: ServingApp, row: Space) -> None:
        """Wait until there is something to do, or a second has passed."""
        changed = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait(
                [app.ended, changed], timeout=self._context.pace.poll, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            changed.cancel()
        if self._changed.is_set():
            return
        await self._forget_crashes_if_stable(app)
        if app.ended.done():
            self._app = None
            await self._db.write(lambda tx: store.set_running(tx, self._lease, None, None))
            await self._on_crash(row, app.ended.result().reason)
            return
        await self._store_use(app)
        await self._sleep_if_idle(app, row.version)

    async def _forget_crashes_if_stable(self, app: ServingApp) -> None:
        if not self._failures or time.monotonic() - app.since <= self._context.pace.stable:
            return
        # The next process, or the next start after a sleep, reads it.
        if await self._store_if_possible(lambda tx: store.set_failures(tx, self._lease, 0)):
            self._failures = 0

    async def _on_crash(self, row: Space, reason: str) -> None:
        if self._app is not None:
            # The version before it serves: nothing is lost, and there is nothing to restart.
            await self._fail(row, Stage.RUNNING, reason)
            return
        self._failures += 1
        self._logs.to(RUN_LOG)(f"hubgate: {reason}")
        if self._failures >= MAX_CRASHES:
            await self._give_up(row, reason)
            return
        seconds = self._context.pace.backoff * 2 ** (self._failures - 1)
        now = self._clock()

        async def unit(tx: Tx) -> None:
            message = f"{reason} It is started again."
            await store.report(tx, self._lease, row.version, Stage.APP_STARTING, message, now)
            await store.set_failures(tx, self._lease, self._failures)

        await self._db.write(unit)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        if self._row.version == row.version:
            self._tried = None

    async def _give_up(self, row: Space, reason: str) -> None:
        context, now = self._context, self._clock()

        async def unit(tx: Tx) -> None:
            await store.set_failures(tx, self._lease, self._failures)
            if await store.report(tx, self._lease, row.version, Stage.RUNTIME_ERROR, reason, now):
                await notify_failed(tx, context, self._lease.repo_id, reason)

        await self._db.write(unit)
        context.outbox.send_soon()

    async def _sleep_if_idle(self, app: ServingApp, version: int) -> None:
        """Let the app sleep after its time, unless another version than `version` is wanted. That is not always the
        version of the app: the one after it may have failed.
        """
        row, now = self._row, self._clock()
        if row.sleep_seconds is None or app.requests or now < row.last_request_at + row.sleep_seconds * SECOND:
            return

        async def unit(tx: Tx) -> bool:
            return await store.fall_asleep(tx, self._lease, version, row.last_request_at, now)

        if await self._db.write(unit):
            self._logs.to(RUN_LOG)("hubgate: no requests; the app sleeps until the next one")
            self._app = None
            await self._retire(app)

    async def _store_use(self, app: ServingApp) -> None:
        now = time.monotonic()
        seconds = now - self._used_at
        if seconds < self._context.pace.use:
            return
        use = app.running.use()
        milli_cpu = int(1000 * max(0.0, use.cpu_seconds - app.cpu_seconds) / seconds)
        self._used_at, app.cpu_seconds = now, use.cpu_seconds
        await self._store_if_possible(lambda tx: store.set_use(tx, self._lease, milli_cpu, use))

    async def _store_if_possible(self, unit: Unit[None]) -> bool:
        """False if the database does not respond. The app runs on; if that lasts, it is ended with its lease."""
        try:
            await self._db.write(unit)
        except HubError:
            return False
        return True

    async def _serve(self, request: TakenRequest, receiving: Receiving, app: ServingApp | None) -> None:
        # Without an app, it has stopped since the statement that took the request.
        host = self._context.hub_address[0]
        answer = await forward(app.running, host, request.id, request.message) if app else not_running(request.id)
        try:
            await receiving.answer(request.receiver_id, request.id, answer)
        except HubError as error:
            # The caller gets no answer in time.
            log.warning("the answer of Space %s could not be stored: %s", self._lease.repo_id, error)

    def _stage_reporter(self, row: Space) -> Report:
        async def report(stage: Stage) -> None:
            self._preparing = stage
            shown, now = stage if self._app is None else _WHILE_SERVING[stage], self._clock()
            await self._db.write(lambda tx: store.report(tx, self._lease, row.version, shown, "", now))

        return report
