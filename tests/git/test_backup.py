"""A hub with repos, backed up during pushes, and restored elsewhere."""

import contextlib
import sqlite3
import threading
from pathlib import Path

from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.git import clone_repo, run_git
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo, send_commit, send_large
from tests.bed.running_hub import run_hub

from hubgate.server.hub.repos.housekeeping import Housekeeping
from hubgate.server.resources import Hub
from hubgate.server.storage.archive import backup, restore

LARGE = b"weights" * 1000


def test_restored_repo_is_complete(sqlite_template: Path, tmp_path: Path) -> None:
    before, after, archive = tmp_path / "before", tmp_path / "after", tmp_path / "hub.tar"
    before.mkdir()
    (before / "hubgate.db").write_bytes(sqlite_template.read_bytes())
    url = f"sqlite:///{before}/hubgate.db"
    with run_hub(settings_for(url, before)) as hub:
        token = create_token(hub, create_user(hub, "ada"))
        with api(hub, token) as client:
            create_repo(client, "tiny")
            send_large(client, "ada/tiny", LARGE)
            work = clone_repo(hub, "ada/tiny", tmp_path / "work", token)
            for number in range(4):
                work.commit(f"{number}.txt")
                work.git("push", "-q", "origin", "main")
            first = work.head()
            stop = threading.Event()

            def go_on() -> None:
                while not stop.is_set():
                    assert send_commit(client, "ada/tiny", {"n.txt": b"x\n"}, rev="main").status_code == 200
                    hub.call(tidied)

            async def tidied(opened: Hub) -> None:
                await Housekeeping(opened.repos, max_packs=1).step()

            going = threading.Thread(target=go_on)
            going.start()
            try:
                for _ in range(5):
                    backup(url, before, archive, with_keys=False)
            finally:
                stop.set()
                going.join()
            # The copy of the refs is newer than the snapshot by now.
            clone_repo(hub, "ada/tiny", tmp_path / "fresh")
    restore(f"sqlite:///{after}/hubgate.db", after, archive)
    assert not list(after.rglob("packed-refs"))
    with run_hub(settings_for(f"sqlite:///{after}/hubgate.db", after)) as hub, api(hub, token) as client:
        head = client.get("/api/models/ada/tiny").json()["sha"]
        again = clone_repo(hub, "ada/tiny", tmp_path / "again", token)
        assert again.head() == head
        assert again.git("merge-base", "--is-ancestor", first, head) == ""
        assert run_git(again.folder, "fsck", "--strict").returncode == 0
        again.commit("after.txt")
        again.git("push", "-q", "origin", "main")
        sha = create_commit(client, "ada/tiny", {"http.txt": b"x\n"})
        assert again.git("ls-remote", "origin", "main").split()[0] == sha


def snapshot(source: Path, target: Path) -> None:
    with contextlib.closing(sqlite3.connect(source)) as reading, contextlib.closing(sqlite3.connect(target)) as writing:
        reading.backup(writing)


def test_copy_of_the_refs_from_another_history_is_replaced(sqlite_template: Path, tmp_path: Path) -> None:
    """An older database with newer folders, as after a restore by other means."""
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    database = Path(url.removeprefix("sqlite:///"))
    with run_hub(settings_for(url, tmp_path)) as hub:
        token = create_token(hub, create_user(hub, "ada"))
        with api(hub, token) as client:
            create_repo(client, "tiny")
            for number in range(3):
                hub.clock.advance(1)
                create_commit(client, "ada/tiny", {"n.txt": str(number).encode()})
            clone_repo(hub, "ada/tiny", tmp_path / "one")
            snapshot(database, tmp_path / "snapshot.db")
            hub.clock.advance(1)
            create_commit(client, "ada/tiny", {"lost.txt": b"x"})
            clone_repo(hub, "ada/tiny", tmp_path / "two")
    for ending in ("-wal", "-shm"):
        Path(f"{database}{ending}").unlink(missing_ok=True)
    (tmp_path / "snapshot.db").replace(database)
    with run_hub(settings_for(url, tmp_path)) as hub, api(hub, token) as client:
        hub.clock.advance(100)
        sha = create_commit(client, "ada/tiny", {"other.txt": b"x"})
        assert clone_repo(hub, "ada/tiny", tmp_path / "three").head() == sha
