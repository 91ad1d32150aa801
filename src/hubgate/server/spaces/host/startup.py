"""Builds and starts one version of a Space, and opens the proxies of its apps."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from hubgate.server.errors import NotFound
from hubgate.server.hub.git.program import GitFailed
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.secret import CannotOpen
from hubgate.server.spaces import environment
from hubgate.server.spaces.host.configuration import (
    Configuration,
    Rejected,
    environment_for,
    read_configuration,
    write_archive,
)
from hubgate.server.spaces.host.context import HostContext
from hubgate.server.spaces.host.log_writer import LogWriter
from hubgate.server.spaces.logs_store import BUILD, RUN
from hubgate.server.spaces.model import Space, Stage
from hubgate.server.spaces.proxy import Proxy
from hubgate.server.spaces.runner import App, BuildFailed, NotListening, Running

log = logging.getLogger("hubgate.spaces")

# Called with BUILDING, and then with APP_STARTING.
Report = Callable[[Stage], Awaitable[None]]


class Crashed(Exception):
    """The app ended before it listened. The message is for the Space's owner."""


class Startup:
    def __init__(self, context: HostContext, repo_id: str, logs: LogWriter) -> None:
        self._context, self._repo_id, self._logs = context, repo_id, logs
        self._proxies: list[Proxy] = []
        self._tasks: set[asyncio.Task[None]] = set()
        # The row may be older than the last attempt.
        self._last_version = 0

    @property
    def _folder(self) -> Path:
        return self._context.folder / "hosted" / self._repo_id

    async def start(self, row: Space, report: Report) -> tuple[Running, str]:
        """The app, which listens, and its commit. Rejected, or Crashed, with the reason if that fails."""
        try:
            return await self._start(row, report)
        finally:
            self._archive(row).unlink(missing_ok=True)

    def _archive(self, row: Space) -> Path:
        return self._folder / f"{row.version}.tar"

    async def _start(self, row: Space, report: Report) -> tuple[Running, str]:
        context, runner = self._context, self._context.runner
        last, self._last_version = max(row.tried_version, self._last_version), row.version
        is_new = row.version > last
        repo = await repo_store.by_id(context.spaces.db, row.repo_id)
        if repo is None:
            raise Rejected(Stage.STOPPED, "The Space was deleted.")
        await report(Stage.BUILDING)
        if is_new:
            await self._logs.clear(BUILD)
        build_log, run_log = self._logs.to(BUILD), self._logs.to(RUN)
        folder = context.folders.of(repo.id)
        try:
            configuration = await read_configuration(repo, folder, runner.pythons())
            app = await self._app(
                row, configuration, environment_for(repo, context.spaces.base_url, await self._opened())
            )
            if row.factory_version > last:
                await runner.forget(row.repo_id)
            build_log(f"hubgate: building {configuration.sha[:7]} for Python {configuration.python}")
            built = await runner.build(app, build_log)
            # Not before: builds wait for each other, and the archives of all would be on the disk.
            await write_archive(folder, configuration.sha, app.source, context.limits.work_folder)
            build_log("hubgate: built")
        except (GitFailed, NotFound) as error:
            # Its text may contain paths of this machine, which are not for the owner's log.
            log.warning("the files of Space %s could not be read: %s", row.repo_id, error)
            message = "The files of the Space could not be read."
            build_log(f"hubgate: {message}")
            raise Rejected(Stage.BUILD_ERROR, message) from error
        except BuildFailed as error:
            build_log(f"hubgate: {error}")
            raise Rejected(Stage.BUILD_ERROR, str(error)) from error
        await report(Stage.APP_STARTING)
        if is_new:
            await self._logs.clear(RUN)
        run_log(f"hubgate: starting {app.app_file} of {configuration.sha[:7]}")
        running = await runner.start(app, built, run_log)
        # It is open in the sandbox.
        app.source.unlink(missing_ok=True)
        try:
            await running.until_listening(context.pace.start)
        except BaseException as error:
            await running.stop(0)
            if not isinstance(error, NotListening):
                raise
            raise Crashed(str(error)) if error.has_ended else Rejected(Stage.RUNTIME_ERROR, str(error)) from None
        return running, configuration.sha

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """Cancel what runs in the background."""
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Close the proxies, after what runs in the background. If this is cancelled, that is cancelled too."""
        try:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            await self._close_proxies()

    async def _close_proxies(self) -> None:
        for proxy in self._proxies:
            await proxy.close()
        self._proxies.clear()
        for name in ("proxy.sock", "build.sock"):
            (self._folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._folder.rmdir()

    async def _opened(self) -> dict[str, str]:
        try:
            return await environment.opened(self._context.spaces, self._repo_id)
        except CannotOpen:
            message = "A secret of the Space cannot be decrypted. Set it again."
            raise Rejected(Stage.CONFIG_ERROR, message) from None

    async def _app(self, row: Space, configuration: Configuration, variables: dict[str, str]) -> App:
        context = self._context
        await self._listen()
        return App(
            space=row.repo_id,
            source=self._archive(row),
            app_file=configuration.app_file,
            requirements=configuration.requirements,
            python=configuration.python,
            environment=variables,
            limits=context.limits,
            build_proxy=self._folder / "build.sock",
            proxy=self._folder / "proxy.sock",
            hub_host=context.hub_address[0],
            index=context.index,
        )

    async def _listen(self) -> None:
        """Start the proxies, at the first version of the Space that this process starts."""
        if self._proxies:
            return
        context = self._context
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left_behind in self._folder.glob("*.tar"):
            left_behind.unlink(missing_ok=True)
        direct = frozenset({context.hub_address})
        running, building = Proxy(context.egress, direct), Proxy(context.egress, direct | context.index_addresses)
        for name, proxy in (("proxy.sock", running), ("build.sock", building)):
            (self._folder / name).unlink(missing_ok=True)
            await proxy.listen(self._folder / name)
        self._proxies = [running, building]
