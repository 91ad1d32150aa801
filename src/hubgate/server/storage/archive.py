"""Backup and restore of a hub on SQLite, as one tar archive.

The database snapshot is taken before the folders are copied: the folders then contain everything that the snapshot
refers to, and possibly newer objects. Refs are stored in the database, so extra objects are harmless. Housekeeping is
locked out during a backup: repacked objects would be missing from the list of files. The last member is a manifest
with the digest of every other member, so that a truncated or damaged archive is rejected before it is restored. The
server secret is included only on request: an archive with the secret gives access to all sealed data.
"""

import hashlib
import io
import json
import lzma
import os
import shutil
import sqlite3
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from hubgate.server.errors import StartupError
from hubgate.server.secret import secret_file
from hubgate.server.storage import data_folder
from hubgate.server.storage.engines import engine_of
from hubgate.server.storage.fsync import sync_path

FOLDERS = ("repos", "lfs", "xorbs")
# Uploads in progress, and deletions in progress.
_INCOMPLETE_FOLDERS = ("repos/incoming", "lfs/incoming", "lfs/parts")
_DELETED_SUFFIX = ".gone"
# Drafts, locks, and git's copy of the refs. The copy may be newer than the snapshot and is recreated from the database.
_EXCLUDED_PREFIXES = ("tmp_", ".tmp-", "hubgate-", "packed-refs")
DATABASE_NAME = "hubgate.db"
MANIFEST_NAME = "manifest.json"

_UNREADABLE = (OSError, EOFError, ValueError, tarfile.TarError, sqlite3.Error, zlib.error, lzma.LZMAError)


def backup(database_url: str, data_dir: Path, target: Path, *, with_keys: bool) -> int:
    """Write the archive and return its size in bytes. An incomplete archive never appears under the target name."""
    source = _database_file(database_url, data_dir)
    if not source.exists():
        raise StartupError(f"There is no database at {source} to back up.")
    if target.exists() and not target.is_file():
        raise StartupError(f"{target} is not a file. Name a file for the backup.")
    if target.resolve().is_relative_to(data_dir.resolve()) or target.resolve() == source.resolve():
        raise StartupError(f"{target} is in the hub's data folder. Write the backup to another folder.")
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".backup-") as scratch:
            snapshot, draft = Path(scratch, DATABASE_NAME), Path(scratch, "archive")
            with data_folder.without_housekeeping(data_dir):
                _snapshot(source, snapshot)
                _write(draft, {DATABASE_NAME: snapshot, **dict(_files(data_dir, with_keys))})
            draft.replace(target)
        sync_path(target.parent)
    except (OSError, sqlite3.Error, tarfile.TarError) as error:
        raise StartupError(f"Cannot write the backup {target}: {error}") from error
    return target.stat().st_size


def restore(database_url: str, data_dir: Path, archive: Path) -> None:
    """Restore an archive into an empty data folder.

    Files are unpacked into a scratch folder, verified, and then moved into place, the database last.
    """
    database = _database_file(database_url, data_dir)
    if not archive.is_file():
        raise StartupError(f"There is no archive {archive}.")
    if database.resolve() != (data_dir / DATABASE_NAME).resolve():
        raise StartupError("Restore works on the database file inside the data folder. Unset HUBGATE_DATABASE_URL.")
    data_folder.require_writable(data_dir)
    with data_folder.exclusive_lock(data_dir):
        data_folder.clear_interrupted_restore(data_dir)
        left = sorted(path.name for path in data_dir.iterdir() if path.name != data_folder.LOCK_NAME)
        if left:
            raise StartupError(f"{data_dir} is not empty: it contains {left[0]}. Restore into an empty folder.")
        data_folder.make_private(data_dir)
        scratch = Path(tempfile.mkdtemp(dir=data_dir, prefix=data_folder.RESTORE_PREFIX))
        try:
            _unpack(archive, scratch)
            _verify(scratch, archive)
            for path in sorted(scratch.iterdir(), key=lambda path: path.name == DATABASE_NAME):
                path.rename(data_dir / path.name)
            (data_dir / DATABASE_NAME).chmod(0o600)
            sync_path(data_dir)
        except tarfile.ReadError as error:
            raise StartupError(f"{archive} is not a complete backup of hubgate.") from error
        except _UNREADABLE as error:
            raise StartupError(f"Cannot restore {archive}: {error}") from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _database_file(database_url: str, data_dir: Path) -> Path:
    file = engine_of(database_url).file
    if file is None:
        raise StartupError(
            "This command supports only SQLite. To back up a hub on PostgreSQL, use pg_dump first, then copy "
            f"{data_dir / 'repos'}, {data_dir / 'lfs'} and {data_dir / 'xorbs'}."
        )
    return file


def _snapshot(source: Path, target: Path) -> None:
    """Copy the database with SQLite's online backup, which is consistent despite concurrent writers."""
    reading, writing = sqlite3.connect(source, timeout=30), sqlite3.connect(target)
    try:
        reading.backup(writing)
        # Not WAL: the snapshot must be a single file.
        writing.execute("PRAGMA journal_mode=DELETE")
    finally:
        reading.close()
        writing.close()


def _files(data_dir: Path, with_keys: bool) -> Iterator[tuple[str, Path]]:
    for folder in FOLDERS:
        for path in sorted((data_dir / folder).rglob("*")):
            name = str(path.relative_to(data_dir))
            if _is_included(name) and not path.is_symlink() and (path.is_file() or _is_empty(path)):
                yield name, path
    if with_keys and secret_file(data_dir).exists():
        yield secret_file(data_dir).name, secret_file(data_dir)


def _is_included(name: str) -> bool:
    parts = PurePosixPath(name).parts
    incomplete = any(name == folder or name.startswith(f"{folder}/") for folder in _INCOMPLETE_FOLDERS)
    deleted = any(part.endswith(_DELETED_SUFFIX) for part in parts)
    return not incomplete and not deleted and not parts[-1].startswith(_EXCLUDED_PREFIXES)


def _is_empty(path: Path) -> bool:
    """Whether a path is an empty folder. Git recognizes a repository by its folders, even empty ones."""
    try:
        return path.is_dir() and next(path.iterdir(), None) is None
    except FileNotFoundError:
        return False


def _write(draft: Path, members: dict[str, Path]) -> None:
    digests: dict[str, str] = {}
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, path in members.items():
                try:
                    if path.is_dir():
                        tar.add(path, name, recursive=False)
                        continue
                    content = path.open("rb")
                except FileNotFoundError:
                    continue
                with content:
                    digests[name] = hashlib.file_digest(content, "sha256").hexdigest()
                    content.seek(0)
                    tar.addfile(tar.gettarinfo(arcname=name, fileobj=content), content)
            manifest = json.dumps({"version": 1, "sha256": digests}, indent=1).encode()
            entry = tarfile.TarInfo(MANIFEST_NAME)
            entry.size = len(manifest)
            tar.addfile(entry, io.BytesIO(manifest))
        file.flush()
        os.fsync(file.fileno())


def _unpack(archive: Path, target: Path) -> None:
    allowed = {DATABASE_NAME, MANIFEST_NAME, secret_file(target).name, *FOLDERS}
    with tarfile.open(archive) as tar:
        for member in tar:
            parts = PurePosixPath(member.name).parts
            if not parts or parts[0] not in allowed:
                raise StartupError(f"{archive} is not a backup of hubgate: it contains {member.name}.")
            tar.extract(member, target, filter=_private)


def _private(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo:
    """Make extracted files private. Python's filter rejects absolute names, `..`, links out of the folder and devices,
    but preserves modes, and archives of older versions contain world-readable files.
    """
    checked = tarfile.data_filter(member, target)
    return checked.replace(mode=0o600, deep=False) if checked.isfile() else checked


def _verify(unpacked: Path, archive: Path) -> None:
    manifest = unpacked / MANIFEST_NAME
    if not manifest.exists():
        raise StartupError(f"{archive} is not a complete backup of hubgate: its manifest is missing.")
    expected = json.loads(manifest.read_bytes())["sha256"]
    manifest.unlink()
    found = {str(path.relative_to(unpacked)): _digest(path) for path in unpacked.rglob("*") if path.is_file()}
    wrong = sorted({*expected.items()} ^ {*found.items()})
    if wrong or DATABASE_NAME not in found:
        name = wrong[0][0] if wrong else DATABASE_NAME
        raise StartupError(f"{archive} is damaged: {name} does not match its checksum.")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
