"""Installs requirements: in a sandbox with the limits of the Space, into a folder that its apps mount read-only.

Packages run code while they are installed, so pip writes to a file system of limited size inside the sandbox. The
sandbox sends the result as an archive, which a second sandbox unpacks in the hub's folder: the hub itself reads neither
the packages nor the archive. A Space does not use what another has installed, because that may depend on its code.
"""

import asyncio
import hashlib
import json
import os
import re
import socket
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from hubgate.server.spaces.bubblewrap.command import Bind, Folder
from hubgate.server.spaces.bubblewrap.environment import INSTALLED, PROXY, WORK, forwarding, sandbox_environment
from hubgate.server.spaces.bubblewrap.installed import Installed, delete
from hubgate.server.spaces.bubblewrap.pythons import Python, find_pythons
from hubgate.server.spaces.bubblewrap.sandbox import Contents
from hubgate.server.spaces.bubblewrap.sandboxes import Sandboxes
from hubgate.server.spaces.runner import MIB, App, BuildFailed, Environment, Log

UNPACK_SECONDS = 300.0
# Each may use the memory and the disk of a Space together.
BUILDS_AT_ONCE = 2
# Settings of the operator's pip that say where packages are found.
_PIP_VARIABLES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST")
_PIP_CONFIGURATION = Path("/etc/pip.conf")
_CREDENTIALS = re.compile(r"://[^/\s]*@")
_PACKAGES, _TEMPORARY = f"{INSTALLED}/packages", f"{INSTALLED}/temporary"
_REQUIREMENTS = f"{WORK}/requirements.txt"
_SMALL_BYTES = 16 * MIB


class Requirements:
    def __init__(self, sandboxes: Sandboxes, installed: Installed) -> None:
        self._sandboxes, self._installed = sandboxes, installed
        self._turn = asyncio.Semaphore(BUILDS_AT_ONCE)

    async def install(self, app: App, log: Log) -> Environment:
        """The environment with these requirements; installed now if there is none."""
        key = hashlib.sha256(json.dumps([app.python, app.requirements, app.index]).encode()).hexdigest()[:32]
        if self._installed.find(app.space, key):
            log("hubgate: the requirements are already installed")
            return Environment(key)
        if self._turn.locked():
            log("hubgate: waiting for the builds of other Spaces")
        async with self._turn:
            await self._install(app, key, log)
        return Environment(key)

    async def _install(self, app: App, key: str, log: Log) -> None:
        log("hubgate: installing the requirements")
        await asyncio.to_thread(self._installed.clean, app.space)
        await asyncio.to_thread(self._installed.make_room, app.limits.disk)
        with tempfile.TemporaryFile(dir=self._sandboxes.folder) as archive:
            try:
                async with asyncio.timeout(app.limits.build_seconds):
                    await self._run_pip(app, find_pythons()[app.python], archive, log)
            except TimeoutError:
                raise BuildFailed(
                    f"The requirements were not installed within {app.limits.build_seconds:.0f} s."
                ) from None
            archive.seek(0)
            unfinished = self._installed.unfinished(app.space)
            try:
                await self._unpack(app, archive, unfinished / "packages", log)
            except BaseException:
                await asyncio.to_thread(delete, unfinished)
                raise
            # It deletes the folder itself: a thread goes on when its caller is cancelled.
            await asyncio.to_thread(self._installed.finish, unfinished, key)

    async def _run_pip(self, app: App, python: Python, archive: IO[bytes], log: Log) -> None:
        if python.pip is None:
            raise BuildFailed(f"Python {python.version} of this hub has no pip. Choose another python_version.")
        limits = app.limits
        spec = {
            "mode": "build",
            "command": [str(python.executable), *python.pip, *_pip_arguments(app)],
            "environment": {**_pip_environment(app), **sandbox_environment(app, python), "TMPDIR": _TEMPORARY},
            "folder": WORK,
            "full": INSTALLED,
            "pack": _PACKAGES,
            "folders": [_PACKAGES, _TEMPORARY],
            "files": {_REQUIREMENTS: app.requirements},
            **forwarding(),
        }
        control, inner = socket.socketpair()
        reader, writer = os.pipe()
        folders = [Folder(INSTALLED, limits.disk), Folder(WORK, _SMALL_BYTES)]
        binds = [Bind(app.build_proxy, PROXY), *_pip_configuration(app)]
        contents = Contents(python, folders, binds, spec, [inner.fileno(), writer])
        try:
            # Installed files are stored in memory until they are unpacked.
            sandbox = await self._sandboxes.open(
                app.space,
                replace(limits, memory=limits.memory + limits.disk),
                self._sandboxes.next_name(),
                contents,
                log,
            )
        except BaseException:
            control.close()
            os.close(reader)
            raise
        finally:
            inner.close()
            os.close(writer)
        # Headers and padding of an archive are at most as large as its files of one block.
        copying = asyncio.create_task(asyncio.to_thread(_copy, reader, archive, 2 * limits.disk + _SMALL_BYTES))
        try:
            ended = await sandbox.wait()
        finally:
            await sandbox.kill()
            is_whole = await copying
            control.close()
        if ended.status:
            raise BuildFailed(f"pip could not install the requirements; the build log says why. {ended.reason}")
        if not is_whole:
            raise BuildFailed(f"The installed requirements are larger than {limits.disk // MIB:,} MiB.")

    async def _unpack(self, app: App, archive: IO[bytes], packages: Path, log: Log) -> None:
        user = self._sandboxes.user(app.space)
        if user is not None:
            os.chown(packages, user, user)
        contents = Contents(
            next(iter(find_pythons().values())),
            [],
            [Bind(packages, INSTALLED, is_writable=True)],
            {"mode": "unpack", "folder": INSTALLED},
            [archive.fileno()],
        )
        sandbox = await self._sandboxes.open(app.space, app.limits, self._sandboxes.next_name(), contents, log)
        try:
            async with asyncio.timeout(UNPACK_SECONDS):
                ended = await sandbox.wait()
        except TimeoutError:
            raise BuildFailed(f"The installed requirements were not stored within {UNPACK_SECONDS:.0f} s.") from None
        finally:
            await sandbox.kill()
        if ended.status:
            raise BuildFailed(f"The installed requirements could not be stored. {ended.reason}")


def _pip_arguments(app: App) -> list[str]:
    index = ["--index-url", app.index] if app.index else []
    options = ["--no-input", "--no-cache-dir", "--disable-pip-version-check", "--no-warn-script-location"]
    return ["install", *options, "--progress-bar", "off", *index, "--target", _PACKAGES, "--requirement", _REQUIREMENTS]


def _pip_configuration(app: App) -> list[Bind]:
    path = _PIP_CONFIGURATION
    if app.index or not os.access(path, os.R_OK) or _has_password(path.read_text(errors="replace")):
        return []
    return [Bind(path, str(path))]


def _pip_environment(app: App) -> dict[str, Any]:
    if app.index:
        return {"PIP_CONFIG_FILE": os.devnull}
    found = {name: os.environ[name] for name in _PIP_VARIABLES if name in os.environ}
    return {name: value for name, value in found.items() if not _has_password(value)}


def _has_password(text: str) -> bool:
    """Whether there is a URL with a user or password. Packages run code while they are installed, which can read it."""
    return _CREDENTIALS.search(text) is not None


def _copy(reader: int, archive: IO[bytes], limit: int) -> bool:
    """Copy until the end. False if there is more than `limit`; the sandbox then cannot write any more."""
    with os.fdopen(reader, "rb", buffering=0) as source:
        while data := source.read(1 << 20):
            limit -= len(data)
            if limit < 0:
                return False
            archive.write(data)
    archive.flush()
    return True
