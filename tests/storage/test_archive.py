"""Backup while serving; restore into an empty folder, never into a hub in use."""

import asyncio
import gzip
import io
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.bed.blocking import run_blocking
from tests.bed.engines import opened_database, set_up_database

from hubgate.server.errors import StartupError
from hubgate.server.storage import data_folder
from hubgate.server.storage.archive import backup, restore


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    run_blocking(set_up_database(url_of(folder), folder))
    (folder / "repos/aa").mkdir(parents=True)
    (folder / "repos/aa/object").write_bytes(b"the content of an object")
    (folder / "secret.key").write_text("k" * 40)
    return folder


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder}/hubgate.db"


async def test_backup_under_load_restores_completely(data: Path, tmp_path: Path) -> None:
    archive, target = tmp_path / "hub.tar", tmp_path / "restored"
    sql = "INSERT INTO leases (name, holder, expires_at) VALUES (:name, 'h', 0)"
    acknowledged = 0
    async with opened_database(url_of(data)) as db:

        async def load() -> None:
            nonlocal acknowledged
            while not done.is_set():
                await db.write(lambda tx: tx.exec(sql, {"name": f"n{acknowledged:06d}"}))
                acknowledged += 1

        done = asyncio.Event()
        loading = asyncio.create_task(load())
        while acknowledged < 50:
            await asyncio.sleep(0)
        before = acknowledged
        await asyncio.to_thread(backup, url_of(data), data, archive, with_keys=False)
        done.set()
        await loading
    assert acknowledged > before, "the load ran on while the backup was taken"
    restore(url_of(target), target, archive)
    async with opened_database(url_of(target)) as db:
        rows = await db.read_long(lambda tx: tx.all("SELECT name FROM leases ORDER BY name"))
    names = [row[0] for row in rows]
    assert names == [f"n{i:06d}" for i in range(len(names))], "a prefix: nothing is missing in the middle"
    assert len(names) >= before
    assert (target / "repos/aa/object").read_bytes() == b"the content of an object"


def test_keys_are_included_only_on_request(data: Path, tmp_path: Path) -> None:
    without, with_keys = tmp_path / "a.tar", tmp_path / "b.tar"
    backup(url_of(data), data, without, with_keys=False)
    backup(url_of(data), data, with_keys, with_keys=True)
    assert "secret.key" not in names_in(without)
    assert "secret.key" in names_in(with_keys)
    assert names_in(without)[0] == "hubgate.db", "the snapshot comes first"
    assert names_in(without)[-1] == "manifest.json", "the proof of completeness last"
    assert (without.stat().st_mode & 0o777) == 0o600


def names_in(archive: Path) -> list[str]:
    with tarfile.open(archive) as tar:
        return tar.getnames()


def test_restore_rejects_a_folder_that_is_not_empty(data: Path, tmp_path: Path) -> None:
    archive = tmp_path / "hub.tar"
    backup(url_of(data), data, archive, with_keys=False)
    with pytest.raises(StartupError, match="not empty"):
        restore(url_of(data), data, archive)


def test_restore_rejects_a_folder_in_use(data: Path, tmp_path: Path) -> None:
    archive, target = tmp_path / "hub.tar", tmp_path / "target"
    backup(url_of(data), data, archive, with_keys=False)
    target.mkdir()
    with data_folder.shared_lock(target), pytest.raises(StartupError, match="Stop it first"):
        restore(url_of(target), target, archive)
    assert not (target / "hubgate.db").exists()


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "stranger.txt", "repos/../../evil"])
def test_restore_rejects_a_foreign_archive(tmp_path: Path, name: str) -> None:
    archive, target, member = tmp_path / "x.tar", tmp_path / "deep/target", tmp_path / "member"
    member.write_bytes(b"x")
    with tarfile.open(archive, "w") as tar:
        entry = tar.gettarinfo(member, "placeholder")
        entry.name = name
        with member.open("rb") as content:
            tar.addfile(entry, content)
    with pytest.raises(StartupError, match=r"not a backup|Cannot restore"):
        restore(url_of(target), target, archive)
    assert sorted(path.name for path in target.iterdir()) == [data_folder.LOCK_NAME]
    assert not (tmp_path / "evil").exists()
    assert not (tmp_path / "deep/evil").exists()


def gzip_half(content: bytes) -> bytes:
    compressed = gzip.compress(content)
    return compressed[: len(compressed) // 2]


def nothing_but_a_folder(_: bytes) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        folder = tarfile.TarInfo(".")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
    return target.getvalue()


def cut_in_half(content: bytes) -> bytes:
    return content[:9000]


def cut_at_a_member(content: bytes) -> bytes:
    """A tar that ends cleanly, only too early."""
    source, target = io.BytesIO(content), io.BytesIO()
    with tarfile.open(fileobj=source) as tar, tarfile.open(fileobj=target, mode="w") as short:
        for member in tar.getmembers()[:-2]:
            short.addfile(member, tar.extractfile(member))
    return target.getvalue()


def flip_a_byte(content: bytes) -> bytes:
    position = content.index(b"the content of an object")
    return content[:position] + b"T" + content[position + 1 :]


@pytest.mark.parametrize("damage", [cut_in_half, cut_at_a_member, flip_a_byte, gzip_half, nothing_but_a_folder])
def test_damaged_archive_leaves_the_folder_empty(data: Path, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    archive, target = tmp_path / "hub.tar", tmp_path / "target"
    backup(url_of(data), data, archive, with_keys=True)
    archive.write_bytes(damage(archive.read_bytes()))
    with pytest.raises(StartupError):
        restore(url_of(target), target, archive)
    assert sorted(path.name for path in target.iterdir()) == [data_folder.LOCK_NAME]


def test_files_that_appear_and_disappear_do_not_break_a_backup(data: Path, tmp_path: Path) -> None:
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            for number in range(50):
                (data / f"repos/aa/{number}").write_bytes(b"x")
            for number in range(50):
                (data / f"repos/aa/{number}").unlink()

    churning = threading.Thread(target=churn)
    churning.start()
    try:
        for number in range(10):
            archive, target = tmp_path / f"{number}.tar", tmp_path / f"restored-{number}"
            backup(url_of(data), data, archive, with_keys=False)
            restore(url_of(target), target, archive)
    finally:
        stop.set()
        churning.join()


def test_interrupted_restore_is_detected_and_can_be_repeated(data: Path, tmp_path: Path) -> None:
    archive, target = tmp_path / "hub.tar", tmp_path / "target"
    backup(url_of(data), data, archive, with_keys=False)
    (target / ".restore-abc/repos").mkdir(parents=True)
    with pytest.raises(StartupError, match="was interrupted"):
        data_folder.prepare(target)
    restore(url_of(target), target, archive)
    data_folder.prepare(target)


def test_planted_symlink_is_not_followed(data: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".hub.tar.part").symlink_to(victim)
    backup(url_of(data), data, tmp_path / "hub.tar", with_keys=True)
    assert victim.read_text() == "precious"


def test_postgres_url_is_referred_to_postgres_tools(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="pg_dump"):
        backup("postgresql:///x", tmp_path, tmp_path / "hub.tar", with_keys=False)
