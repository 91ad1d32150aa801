"""The data folder: made private, proven writable, and marked as in use while a server holds it."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from hubgate.server.errors import StartupError

LOCK_NAME = "in-use.lock"
TIDYING_NAME = "tidying.lock"

RESTORE_PREFIX = ".restore-"
OUR_NAMES = {LOCK_NAME, TIDYING_NAME, "hubgate.db", "secret.key", "repos", "lfs", "mail"}


def make_ready(data_dir: Path) -> None:
    make_writable(data_dir)
    found = {path.name for path in data_dir.iterdir()} - {"lost+found"}
    if found and not found & OUR_NAMES and not any(name.startswith(RESTORE_PREFIX) for name in found):
        # From / the default folder would be /var, say.
        raise StartupError(f"{data_dir} is not empty and holds no hub. Choose another folder: --data-dir.")
    if any(data_dir.glob(RESTORE_PREFIX + "*")):
        raise StartupError(f"A restore into {data_dir} was cut short. Run it again, or choose another folder.")


def make_writable(data_dir: Path) -> None:
    probe = data_dir / f".writable-{os.getpid()}"
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        with contextlib.suppress(OSError):
            probe.unlink()
        raise StartupError(
            f"Cannot write to the data folder {data_dir}: {error.strerror}. Mend that or choose another: --data-dir."
        ) from error


def clear_interrupted_restore(data_dir: Path) -> None:
    for left in data_dir.glob(RESTORE_PREFIX + "*"):
        shutil.rmtree(left)


@contextlib.contextmanager
def in_use(data_dir: Path) -> Iterator[None]:
    """Held by every serving process; several may share a folder, a restore may not join them."""
    with _locked(data_dir, fcntl.LOCK_SH, "A restore is running in this data folder. Wait for it to end."):
        yield


@contextlib.contextmanager
def alone(data_dir: Path) -> Iterator[None]:
    with _locked(data_dir, fcntl.LOCK_EX, f"A server is using {data_dir}. Stop it first."):
        yield


@contextlib.contextmanager
def untidied(data_dir: Path) -> Iterator[None]:
    """While this is held nobody tidies up; whoever does so already is waited for."""
    descriptor = _opened(data_dir / TIDYING_NAME)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def tidying(data_dir: Path) -> Iterator[bool]:
    """False while a backup is taken, or another tidies up, on whichever machine."""
    descriptor = _opened(data_dir / TIDYING_NAME)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _locked(data_dir: Path, kind: int, refusal: str) -> Iterator[None]:
    descriptor = _opened(data_dir / LOCK_NAME)
    try:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartupError(refusal) from None
        yield
    finally:
        os.close(descriptor)


def _opened(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartupError(f"Cannot open {file}: {error.strerror}.") from error
