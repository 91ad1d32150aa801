"""The data folder: checks that it is writable, makes it private to the hub's user, and locks it while in use."""

import contextlib
import fcntl
import logging
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from hubgate.server.errors import StartupError

log = logging.getLogger("hubgate.storage")

LOCK_NAME = "in-use.lock"
HOUSEKEEPING_LOCK_NAME = "tidying.lock"

RESTORE_PREFIX = ".restore-"
# Any of these identifies a hub's data folder.
OUR_NAMES = {LOCK_NAME, HOUSEKEEPING_LOCK_NAME, "hubgate.db", "secret.key", "repos", "lfs", "xorbs"}
# A mail folder identifies a data folder only if nothing else is in the data folder. A command may send mail before the
# first start, but /var, the default data folder of a hub that is started in /, also contains a mail folder.
_MAIL_FOLDER = "mail"
_OUR_FOLDERS = {"repos", "lfs", "xorbs", _MAIL_FOLDER, "lost+found"}
_PRIVATE = 0o700


def create_private_files() -> None:
    """Set the umask, so that new files of this process and its children are readable only by their user."""
    os.umask(0o077)


def prepare(data_dir: Path) -> None:
    require_writable(data_dir)
    found = {path.name for path in data_dir.iterdir()} - {"lost+found"}
    is_ours = found <= {_MAIL_FOLDER} or found & OUR_NAMES or any(name.startswith(RESTORE_PREFIX) for name in found)
    if not is_ours:
        raise StartupError(f"{data_dir} is not empty, and not a hub's data folder. Choose another folder: --data-dir.")
    if any(data_dir.glob(RESTORE_PREFIX + "*")):
        raise StartupError(f"A restore into {data_dir} was interrupted. Run it again, or choose another folder.")
    make_private(data_dir)


def make_private(data_dir: Path) -> None:
    """Remove other users' access to the data folder. If the folder also contains foreign folders, only log a warning:
    a chmod of /var or a home folder would break other programs.
    """
    mode = stat.S_IMODE(data_dir.stat().st_mode)
    if not mode & ~_PRIVATE:
        return
    foreign = [path.name for path in data_dir.iterdir() if _is_foreign_folder(path)]
    fix = f"Run: chmod 700 {data_dir}"
    if foreign:
        log.warning(
            "Other users can open the data folder %s (mode %o), which also contains %s. %s",
            data_dir,
            mode,
            min(foreign),
            fix,
        )
        return
    try:
        data_dir.chmod(_PRIVATE)
    except OSError as error:
        log.warning("Other users can open the data folder %s (mode %o): %s. %s", data_dir, mode, error.strerror, fix)
    else:
        log.warning(
            "Other users could open the data folder %s (mode %o). It is now private (mode 700).", data_dir, mode
        )


def _is_foreign_folder(path: Path) -> bool:
    return path.name not in _OUR_FOLDERS and not path.name.startswith(".") and path.is_dir()


def require_writable(data_dir: Path) -> None:
    probe = data_dir / f".writable-{os.getpid()}"
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        with contextlib.suppress(OSError):
            probe.unlink()
        what = f"Cannot write to the data folder {data_dir}: {error.strerror}."
        raise StartupError(f"{what} Fix that, or choose another folder: --data-dir.") from error


def clear_interrupted_restore(data_dir: Path) -> None:
    for leftover in data_dir.glob(RESTORE_PREFIX + "*"):
        shutil.rmtree(leftover)


@contextlib.contextmanager
def shared_lock(data_dir: Path) -> Iterator[None]:
    """Lock the folder for serving. Several servers may share it, but not with a running restore or migration."""
    refusal = "A restore or a migration is running in this data folder. Wait until it has finished."
    with _locked(data_dir, fcntl.LOCK_SH, refusal):
        yield


@contextlib.contextmanager
def exclusive_lock(data_dir: Path) -> Iterator[None]:
    with _locked(data_dir, fcntl.LOCK_EX, f"A server is using {data_dir}. Stop it first."):
        yield


@contextlib.contextmanager
def without_housekeeping(data_dir: Path) -> Iterator[None]:
    """Wait until no housekeeping is running, then lock it out."""
    descriptor = _open_lock_file(data_dir / HOUSEKEEPING_LOCK_NAME)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def housekeeping_lock(data_dir: Path) -> Iterator[bool]:
    """Try to lock the folder; yields False if a backup or another housekeeping run is in progress, on any machine."""
    descriptor = _open_lock_file(data_dir / HOUSEKEEPING_LOCK_NAME)
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
    descriptor = _open_lock_file(data_dir / LOCK_NAME)
    try:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartupError(refusal) from None
        yield
    finally:
        os.close(descriptor)


def _open_lock_file(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartupError(f"Cannot open {file}: {error.strerror}.") from error
