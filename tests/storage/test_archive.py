"""Backup while serving; restore into an empty folder, never into a hub that is in use."""

import asyncio
import tarfile
from pathlib import Path

import pytest
from tests.bed.blocking import blocking
from tests.bed.engines import opened, set_up

from hubgate.server.errors import StartupError
from hubgate.server.storage import datadir
from hubgate.server.storage.archive import backup, restore


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    blocking(set_up(url_of(folder), folder))
    (folder / "repos/aa").mkdir(parents=True)
    (folder / "repos/aa/object").write_bytes(b"git")
    (folder / "secret.key").write_text("k" * 40)
    return folder


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder}/hubgate.db"


async def test_a_backup_taken_under_load_restores_whole(data: Path, tmp_path: Path) -> None:
    archive, target = tmp_path / "hub.tar", tmp_path / "restored"
    sql = "INSERT INTO leases (name, holder, expires_at) VALUES (:name, 'h', 0)"
    acknowledged = 0
    async with opened(url_of(data)) as db:

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
    async with opened(url_of(target)) as db:
        rows = await db.read_long(lambda tx: tx.all("SELECT name FROM leases ORDER BY name"))
    names = [row[0] for row in rows]
    assert names == [f"n{i:06d}" for i in range(len(names))], "a prefix: nothing is missing in the middle"
    assert len(names) >= before
    assert (target / "repos/aa/object").read_bytes() == b"git"


def test_keys_travel_only_when_asked_for(data: Path, tmp_path: Path) -> None:
    without, with_keys = tmp_path / "a.tar", tmp_path / "b.tar"
    backup(url_of(data), data, without, with_keys=False)
    backup(url_of(data), data, with_keys, with_keys=True)
    assert "secret.key" not in names_in(without)
    assert "secret.key" in names_in(with_keys)
    assert names_in(without)[0] == "hubgate.db", "the snapshot comes first"
    assert (without.stat().st_mode & 0o777) == 0o600


def names_in(archive: Path) -> list[str]:
    with tarfile.open(archive) as tar:
        return tar.getnames()


def test_restore_refuses_a_folder_that_is_not_empty(data: Path, tmp_path: Path) -> None:
    archive = tmp_path / "hub.tar"
    backup(url_of(data), data, archive, with_keys=False)
    with pytest.raises(StartupError, match="not empty"):
        restore(url_of(data), data, archive)


def test_restore_refuses_a_folder_in_use(data: Path, tmp_path: Path) -> None:
    archive, target = tmp_path / "hub.tar", tmp_path / "target"
    backup(url_of(data), data, archive, with_keys=False)
    target.mkdir()
    with datadir.in_use(target), pytest.raises(StartupError, match="Stop it first"):
        restore(url_of(target), target, archive)
    assert not (target / "hubgate.db").exists()


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "stranger.txt", "repos/../../evil"])
def test_restore_refuses_an_archive_that_is_not_ours(tmp_path: Path, name: str) -> None:
    archive, target, member = tmp_path / "x.tar", tmp_path / "deep/target", tmp_path / "member"
    member.write_bytes(b"x")
    with tarfile.open(archive, "w") as tar:
        entry = tar.gettarinfo(member, "placeholder")
        entry.name = name
        with member.open("rb") as content:
            tar.addfile(entry, content)
    with pytest.raises(StartupError, match=r"not a backup|Cannot restore"):
        restore(url_of(target), target, archive)
    assert sorted(path.name for path in target.iterdir()) == [datadir.LOCK_NAME]
    assert not (tmp_path / "evil").exists()
    assert not (tmp_path / "deep/evil").exists()


def test_a_damaged_archive_leaves_the_folder_empty(data: Path, tmp_path: Path) -> None:
    archive, target = tmp_path / "hub.tar", tmp_path / "target"
    backup(url_of(data), data, archive, with_keys=False)
    archive.write_bytes(archive.read_bytes()[:9000])
    with pytest.raises(StartupError):
        restore(url_of(target), target, archive)
    assert sorted(path.name for path in target.iterdir()) == [datadir.LOCK_NAME]


def test_postgres_is_sent_to_its_own_tools(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="pg_dump"):
        backup("postgresql:///x", tmp_path, tmp_path / "hub.tar", with_keys=False)
