"""The runner `bubblewrap`."""

import asyncio
import os
import socket
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path

from hubgate.server.spaces.bubblewrap import checks
from hubgate.server.spaces.bubblewrap.command import Bind, Folder
from hubgate.server.spaces.bubblewrap.environment import INSTALLED, PROXY, WORK, app_environment, forwarding
from hubgate.server.spaces.bubblewrap.installed import Installed
from hubgate.server.spaces.bubblewrap.owners import end_sandboxes_of_dead_owners
from hubgate.server.spaces.bubblewrap.pythons import find_pythons
from hubgate.server.spaces.bubblewrap.requirements import Requirements
from hubgate.server.spaces.bubblewrap.running import RunningApp
from hubgate.server.spaces.bubblewrap.sandbox import Contents
from hubgate.server.spaces.bubblewrap.sandboxes import Sandboxes
from hubgate.server.spaces.runner import App, Environment, LimitsTogether, Log


class BubblewrapRunner:
    """`folder` is private to the hub. `together` limits all Spaces of this machine."""

    def __init__(self, folder: Path, together: LimitsTogether | None = None) -> None:
        self._folder = folder
        self._sandboxes = Sandboxes(folder, together.memory if together else None)
        self._installed = Installed(folder / "installed", together.disk if together else None)
        self._requirements = Requirements(self._sandboxes, self._installed)
        self._sockets = folder / "sockets"
        self._running: set[RunningApp] = set()

    def problems(self) -> list[str]:
        return checks.problems(self._folder)

    def pythons(self) -> list[str]:
        return [version for version, python in find_pythons().items() if python.pip is not None]

    async def sweep(self) -> None:
        await end_sandboxes_of_dead_owners(self._folder / "owners", self._sockets)

    async def build(self, app: App, log: Log) -> Environment:
        return await self._requirements.install(app, log) if app.requirements.strip() else Environment("")

    async def start(self, app: App, environment: Environment, log: Log) -> RunningApp:
        with ExitStack() as opened:
            python = find_pythons()[app.python]
            binds = [Bind(app.proxy, PROXY)]
            if environment.id:
                binds.append(Bind(self._installed.packages(app.space, environment.id), INSTALLED))
                opened.callback(os.close, self._installed.lock(app.space, environment.id))
            spec = {
                "mode": "run",
                "command": [str(python.executable), "-u", f"./{app.app_file}"],
                "environment": app_environment(app, python),
                "folder": WORK,
                "full": WORK,
                **forwarding(),
            }
            name = self._sandboxes.next_name()
            path = self._sockets / name
            work = Folder(WORK, app.limits.work_folder)
            control, inner = socket.socketpair()
            opened.callback(control.close)
            with inner, _listen(path) as listener, app.source.open("rb") as source:
                opened.callback(path.unlink, missing_ok=True)
                descriptors = [inner.fileno(), listener.fileno(), source.fileno()]
                contents = Contents(python, [work], binds, spec, descriptors)
                sandbox = await self._sandboxes.open(app.space, app.limits, name, contents, log)
            running = RunningApp(sandbox, control, path, opened.pop_all())
        self._running.add(running)
        running.on_end(lambda: self._running.discard(running))
        return running

    async def forget(self, space: str) -> None:
        await asyncio.to_thread(self._installed.forget, space)

    async def retain(self, spaces: Collection[str]) -> None:
        await asyncio.to_thread(self._installed.retain, spaces)

    async def close(self) -> None:
        await asyncio.gather(*(running.stop(0) for running in self._running))
        self._sandboxes.close()


def _listen(path: Path) -> socket.socket:
    """A listening socket, which is passed into the sandbox. By descriptor: the path may be longer than names can be."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
        listener.listen(128)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(folder)
    return listener
