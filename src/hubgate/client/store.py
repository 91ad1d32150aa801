"""Sign-ins kept between runs: one JSON file in the user's configuration folder, readable by its owner only.

It is written beside and renamed, so a reader sees the old or the new one, never half of it. Whoever changes it holds
the lock file; a refresh holds it over the request, so that of two processes one refreshes and the other finds it done.
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

WAIT_FOR_LOCK = 60.0
_VERSION = 1


@dataclass(frozen=True)
class SignedIn:
    """Times are seconds since the epoch."""

    access_token: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)
    expires_at: float = 0.0
    issued_at: float = 0.0
    client_id: str = ""
    scope: str = ""
    name: str = ""


@dataclass(frozen=True)
class Kept:
    """`endpoint` is the hub that was signed in to last."""

    endpoint: str = ""
    hubs: dict[str, SignedIn] = field(default_factory=dict)


def default_folder() -> Path:
    if sys.platform == "win32":
        root = os.environ.get("APPDATA") or str(Path.home() / "AppData" / "Roaming")
    else:
        root = os.environ.get("XDG_CONFIG_HOME") or ""
        # A relative one is to be ignored (XDG Base Directory Specification).
        root = root if root.startswith("/") else str(Path.home() / ".config")
    return Path(root) / "hubgate"


class Store:
    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or default_folder()
        self.path = self._folder / "credentials.json"

    def load(self) -> Kept:
        try:
            text = self.path.read_text(encoding="utf-8")
            if os.name == "posix" and self.path.stat().st_mode & 0o077:
                self.path.chmod(0o600)
        except FileNotFoundError:
            return Kept()
        except (OSError, UnicodeDecodeError) as error:
            raise StoreUnusable(f"Cannot read {self.path}: {getattr(error, 'strerror', None) or error}") from error
        try:
            return _parsed(json.loads(text))
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise StoreUnusable(f"{self.path} is damaged. Delete it and sign in again.") from None

    def save(self, kept: Kept) -> None:
        content = {"version": _VERSION, "endpoint": kept.endpoint}
        content["hubs"] = {origin: asdict(signed_in) for origin, signed_in in kept.hubs.items()}
        try:
            self._make_folder()
            import tempfile

            # mkstemp makes it 0600: it is at no moment readable for others.
            descriptor, draft = tempfile.mkstemp(prefix=".credentials-", dir=self._folder)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    json.dump(content, file, indent=2)
                    file.flush()
                    os.fsync(file.fileno())
                Path(draft).replace(self.path)
            except BaseException:
                Path(draft).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise StoreUnusable(f"Cannot write {self.path}: {error.strerror or error}") from error

    def lock(self) -> "Lock":
        return Lock(self._folder / "lock", self._make_folder)

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)


class Lock:
    """Between processes, and between threads: each Lock has a file handle of its own."""

    def __init__(self, path: Path, before: Callable[[], None]) -> None:
        self._path = path
        self._before = before
        self._file: IO[bytes] | None = None

    def taken(self) -> bool:
        """One try; it does not wait."""
        try:
            self._before()
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
            # Closing it lets go of the lock.
            self._file.close()
            self._file = None


def locked(lock: Lock) -> Flow[None]:
    deadline = time.monotonic() + WAIT_FOR_LOCK
    while not (yield from work(lock.taken)):
        if time.monotonic() > deadline:
            raise StoreUnusable("Another process has held the stored sign-ins for a minute. Try again.")
        yield from sleep(0.05)


def changed(store: Store, change: Callable[[Kept], Kept]) -> Flow[Kept]:
    lock = store.lock()
    yield from locked(lock)
    try:
        kept = change((yield from work(store.load)))
        yield from work(lambda: store.save(kept))
    finally:
        lock.release()
    return kept


def with_hub(kept: Kept, origin: str, signed_in: SignedIn) -> Kept:
    return Kept(origin, {**kept.hubs, origin: signed_in})


def without_hub(kept: Kept, origin: str) -> Kept:
    hubs = {name: signed_in for name, signed_in in kept.hubs.items() if name != origin}
    return replace(kept, endpoint="" if kept.endpoint == origin else kept.endpoint, hubs=hubs)


def _parsed(content: Any) -> Kept:
    hubs = {}
    for origin, given in content.get("hubs", {}).items():
        known = {name: given[name] for name in SignedIn.__dataclass_fields__ if name in given}
        hubs[str(origin)] = SignedIn(**known)
    return Kept(str(content.get("endpoint", "")), hubs)


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
