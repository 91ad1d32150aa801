"""Backup and restore of an embedded hub: one tar archive.

The database snapshot comes first and the folders after it: what the snapshot refers to is then in the folders, and
whatever arrived meanwhile is merely extra. Refs live in the database, so extra objects are harmless. The server secret
is left out unless asked for: with it the archive opens everything that is sealed.
"""

import os
import shutil
import sqlite3
import tarfile
import tempfile
from pathlib import Path

from hubgate.server.errors import StartupError
from hubgate.server.secret import secret_file
from hubgate.server.storage import datadir
from hubgate.server.storage.engines import is_sqlite, sqlite_path

FOLDERS = ("repos", "lfs")
DATABASE_NAME = "hubgate.db"


def backup(database_url: str, data_dir: Path, target: Path, *, with_keys: bool) -> int:
    """Write the archive next to its name and rename it when complete; the size in bytes."""
    _only_sqlite(database_url, data_dir)
    source = sqlite_path(database_url)
    if not source.exists():
        raise StartupError(f"There is no database at {source} to back up.")
    draft = target.with_name(f".{target.name}.part")
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".backup-") as scratch:
            snapshot = Path(scratch, DATABASE_NAME)
            _snapshot(source, snapshot)
            descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                _write(file, snapshot, data_dir, with_keys)
                file.flush()
                os.fsync(file.fileno())
        draft.replace(target)
    except (OSError, sqlite3.Error) as error:
        draft.unlink(missing_ok=True)
        raise StartupError(f"Cannot write the backup {target}: {error}") from error
    return target.stat().st_size


def restore(database_url: str, data_dir: Path, archive: Path) -> None:
    """Fill an empty data folder. Unpacked beside, then moved in with the database last: cut short, it is no hub yet."""
    _only_sqlite(database_url, data_dir)
    if not archive.is_file():
        raise StartupError(f"There is no archive {archive}.")
    if sqlite_path(database_url).resolve() != (data_dir / DATABASE_NAME).resolve():
        raise StartupError(
            "Restore works on the default database file inside the data folder. Unset HUBGATE_DATABASE_URL."
        )
    datadir.make_ready(data_dir)
    with datadir.alone(data_dir):
        left = sorted(path.name for path in data_dir.iterdir() if path.name != datadir.LOCK_NAME)
        if left:
            raise StartupError(f"{data_dir} is not empty: it holds {left[0]}. Restore into an empty folder.")
        scratch = Path(tempfile.mkdtemp(dir=data_dir, prefix=".restore-"))
        try:
            _unpack(archive, scratch)
            _check(scratch / DATABASE_NAME, archive)
            for path in sorted(scratch.iterdir(), key=lambda path: path.name == DATABASE_NAME):
                path.rename(data_dir / path.name)
        except (OSError, tarfile.TarError, sqlite3.Error) as error:
            raise StartupError(f"Cannot restore {archive}: {error}") from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _only_sqlite(database_url: str, data_dir: Path) -> None:
    if not is_sqlite(database_url):
        raise StartupError(
            "This hub keeps its data in PostgreSQL: use pg_dump for the database first, then copy "
            f"{data_dir / 'repos'} and {data_dir / 'lfs'}."
        )


def _snapshot(source: Path, target: Path) -> None:
    """SQLite's online backup: a consistent copy while others write."""
    reading, writing = sqlite3.connect(source, timeout=30), sqlite3.connect(target)
    try:
        reading.backup(writing)
        # A plain file, not WAL: restoring needs nothing beside it.
        writing.execute("PRAGMA journal_mode=DELETE")
    finally:
        reading.close()
        writing.close()


def _write(file: "os.PathLike[str] | object", snapshot: Path, data_dir: Path, with_keys: bool) -> None:
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
        tar.add(snapshot, DATABASE_NAME)
        for folder in FOLDERS:
            if (data_dir / folder).is_dir():
                tar.add(data_dir / folder, folder)
        if with_keys and secret_file(data_dir).exists():
            tar.add(secret_file(data_dir), secret_file(data_dir).name)


def _unpack(archive: Path, target: Path) -> None:
    allowed = {DATABASE_NAME, secret_file(target).name, *FOLDERS}
    with tarfile.open(archive) as tar:
        for member in tar:
            if Path(member.name).parts[0] not in allowed:
                raise StartupError(f"{archive} is not a backup of hubgate: it holds {member.name}.")
            # The filter refuses absolute names, `..`, links out of the folder and devices.
            tar.extract(member, target, filter="data")


def _check(database: Path, archive: Path) -> None:
    if not database.exists():
        raise StartupError(f"{archive} is not a backup of hubgate: it has no {DATABASE_NAME}.")
    connection = sqlite3.connect(database)
    try:
        (verdict,) = connection.execute("PRAGMA quick_check").fetchone()
    finally:
        connection.close()
    if verdict != "ok":
        raise StartupError(f"The database in {archive} is damaged: {verdict}")
