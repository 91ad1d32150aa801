"""Stored sign-ins: one JSON file in the user's configuration folder, readable only by its owner.

The file is replaced atomically, so a reader never sees a partial file. Changes require the lock file. A refresh locks
it during the request, so that only one of several processes refreshes a token.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from hubgate.client.errors import StoreUnusable
from hubgate.client.wire import Flow, sleep, work

LOCK_WAIT_SECONDS = 60.0
_VERSION = 1


@dataclass(frozen=True)
class SignIn:
    """A stored sign-in. Times are seconds since the epoch."""

    access_token: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)
    expires_at: float = 0.0
    issued_at: float = 0.0
    client_id: str = ""
    scope: str = ""
    name: str = ""


@dataclass(frozen=True)
class StoredSignIns:
    """The content of the file. `endpoint` is the hub of the last sign-in."""

    endpoint: str = ""
    hubs: dict[str, SignIn] = field(default_factory=dict)


def default_folder() -> Path:
    if sys.platform == "win32":
        root = os.environ.get("APPDATA") or str(Path.home() / "AppData" / "Roaming")
    else:
        root = os.environ.get("XDG_CONFIG_HOME") or ""
        # A relative path must be ignored (XDG Base Directory Specification).
        root = root if root.startswith("/") else str(Path.home() / ".config")
    return Path(root) / "hubgate"


class Store:
    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or default_folder()
        self.path = self._folder / "credentials.json"

    def load(self) -> StoredSignIns:
        try:
            text = self.path.read_text(encoding="utf-8")
            if os.name == "posix" and self.path.stat().st_mode & 0o077:
                self.path.chmod(0o600)
        except FileNotFoundError:
            return StoredSignIns()
        except (OSError, UnicodeDecodeError) as error:
            raise StoreUnusable(f"Cannot read {self.path}: {getattr(error, 'strerror', None) or error}") from error
        try:
            return _parse(json.loads(text))
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            raise StoreUnusable(f"{self.path} is damaged. Delete it and sign in again.") from None

    def save(self, contents: StoredSignIns) -> None:
        content = {"version": _VERSION, "endpoint": contents.endpoint}
        content["hubs"] = {origin: asdict(sign_in) for origin, sign_in in contents.hubs.items()}
        try:
            self._create_folder()
            import tempfile

            # mkstemp creates the file with mode 0600, so others can never read it.
            descriptor, temporary = tempfile.mkstemp(prefix=".credentials-", dir=self._folder)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    json.dump(content, file, indent=2)
                    file.flush()
                    os.fsync(file.fileno())
                Path(temporary).replace(self.path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise StoreUnusable(f"Cannot write {self.path}: {error.strerror or error}") from error

    def lock(self) -> "Lock":
        return Lock(self._folder / "lock", self._create_folder)

    def _create_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)


class Lock:
    """A lock between processes and threads. Each Lock opens the file separately."""

    def __init__(self, path: Path, create_folder: Callable[[], None]) -> None:
        self._path = path
        self._create_folder = create_folder
        self._file: IO[bytes] | None = None

    def try_acquire(self) -> bool:
        """Try to acquire the lock, without waiting."""
        try:
            self._create_folder()
            file = self._path.open("a+b")
        except OSError as error:
            raise StoreUnusable(f"Cannot lock {self._path}: {error.strerror or error}") from error
        if not try_lock(file):
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        if self._file is not None:
            # Closing the file releases the lock.
            self._file.close()
            self._file = None


def acquire(lock: Lock) -> Flow[None]:
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while not (yield from work(lock.try_acquire)):
        if time.monotonic() > deadline:
            raise StoreUnusable("The stored sign-ins have been locked by another process for a minute. Try again.")
        yield from sleep(0.05)


def update(store: Store, change: Callable[[StoredSignIns], StoredSignIns]) -> Flow[StoredSignIns]:
    lock = store.lock()
    yield from acquire(lock)
    try:
        contents = change((yield from work(store.load)))
        yield from work(lambda: store.save(contents))
    finally:
        lock.release()
    return contents


def with_hub(contents: StoredSignIns, origin: str, sign_in: SignIn) -> StoredSignIns:
    return StoredSignIns(origin, {**contents.hubs, origin: sign_in})


def without_hub(contents: StoredSignIns, origin: str) -> StoredSignIns:
    hubs = {name: sign_in for name, sign_in in contents.hubs.items() if name != origin}
    return replace(contents, endpoint="" if contents.endpoint == origin else contents.endpoint, hubs=hubs)


_FIELDS = SignIn.__dataclass_fields__


def _of_type(kind: object, value: Any) -> Any:
    if kind is float:
        return float(value)
    if not isinstance(value, str):
        raise TypeError
    return value


def _parse(content: Any) -> StoredSignIns:
    hubs = {}
    for origin, given in content.get("hubs", {}).items():
        known = {name: _of_type(field.type, given[name]) for name, field in _FIELDS.items() if name in given}
        hubs[str(origin)] = SignIn(**known)
    return StoredSignIns(str(content.get("endpoint", "")), hubs)


if sys.platform == "win32":
    import msvcrt

    def try_lock(file: IO[bytes]) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(file: IO[bytes]) -> bool:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False
