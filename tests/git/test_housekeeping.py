"""Housekeeping on disk: few packs, nothing lost, and leftovers are deleted in time."""

import os
import shutil
import threading
from pathlib import Path

import pytest
from tests.bed.git import WorkingCopy, run_git
from tests.bed.repos import create_commit, create_repo, send_large
from tests.git.conftest import Scene

from hubgate.server.clock import DAY, HOUR, SECOND
from hubgate.server.hub.repos.housekeeping import Housekeeping
from hubgate.server.resources import Hub
from hubgate.server.storage import data_folder


def tidy(scene: Scene, max_packs: int = 3) -> None:
    async def work(opened: Hub) -> None:
        housekeeping = Housekeeping(opened.repos, max_packs)
        while await housekeeping.step():
            continue

    scene.hub.call(work)


def aged(scene: Scene, path: Path, age: int) -> Path:
    """Set to an old modification time, with all its contents."""
    moment = (scene.hub.clock() - age) / SECOND
    for inside in (*path.rglob("*"), path):
        os.utime(inside, (moment, moment))
    return path


def packs(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "objects/pack").glob("*.pack"))


@pytest.mark.one_engine
def test_many_packs_become_few_and_nothing_is_lost(scene: Scene) -> None:
    repo_id = scene.client.get("/api/models/ada/tiny").json()["_id"]
    folder = scene.repo_folder(repo_id)
    work = scene.clone("one")
    work.git("checkout", "-q", "-b", "lost")
    lost = work.commit("lost.txt", "no ref leads here any more\n")
    work.git("push", "-q", "origin", "lost")
    work.git("push", "-q", "origin", ":lost")
    work.git("checkout", "-q", "main")
    for number in range(6):
        work.commit(f"{number}.txt")
        work.git("push", "-q", "origin", "main")
    head = create_commit(scene.client, "ada/tiny", {"http.txt": b"loose objects\n"})
    before = run_git(folder, "cat-file", "--batch-all-objects", "--batch-check").stdout
    assert len(packs(folder)) == 7
    tidy(scene)
    assert len(packs(folder)) <= 2
    assert not list(folder.glob("objects/??/*")), "loose objects are packed, too"
    assert run_git(folder, "cat-file", "--batch-all-objects", "--batch-check").stdout == before
    assert run_git(folder, "cat-file", "-e", lost).returncode == 0
    assert run_git(folder, "fsck", "--strict").returncode == 0
    assert scene.clone("two").head() == head
    work.git("pull", "-q")
    work.commit("after.txt")
    work.git("push", "-q", "origin", "main")
    few = packs(folder)
    tidy(scene)
    assert packs(folder) == few, "what is tidy stays as it is"


def test_leftovers_are_deleted_in_time(scene: Scene) -> None:
    root, large = scene.hub.settings.data_dir / "repos", scene.hub.settings.data_dir / "lfs"
    made = {
        root / "incoming/old/pack": 25 * HOUR,
        root / "incoming/new/pack": 23 * HOUR,
        large / "incoming/old": 25 * HOUR,
        large / "incoming/new": HOUR,
        large / "parts/old": 25 * HOUR,
        root / "aa/0123456789abcdef012345aa.gone/objects": 0,
        root / "bb/0123456789abcdef012345bb.git/objects": 2 * HOUR,
        root / "cc/0123456789abcdef012345cc.git/objects": HOUR // 2,
    }
    for path, age in made.items():
        path.mkdir(parents=True)
        (path / "file").write_text("x")
        aged(scene, path.parent if path.name in ("pack", "objects") else path, age)
    repo_id = create_repo(scene.client, "other")["id"]
    aged(scene, scene.repo_folder(repo_id), 400 * DAY)
    tidy(scene)
    left = {path for path in made if path.exists()}
    assert left == {
        root / "incoming/new/pack",
        large / "incoming/new",
        root / "cc/0123456789abcdef012345cc.git/objects",
    }
    assert scene.client.get("/api/models/ada/other").status_code == 200
    assert scene.clone("one", "ada/other").head()


@pytest.mark.one_engine
def test_uploads_that_end_during_housekeeping_do_not_disturb_it(scene: Scene) -> None:
    """Their folders are deleted while housekeeping reads them."""
    incoming, stop = scene.hub.settings.data_dir / "repos/incoming", threading.Event()

    def upload() -> None:
        while not stop.is_set():
            for number in range(50):
                (incoming / f"upload/{number}").mkdir(parents=True)
            shutil.rmtree(incoming / "upload")

    uploading = threading.Thread(target=upload)
    uploading.start()
    try:
        for _ in range(50):
            tidy(scene)
    finally:
        stop.set()
        uploading.join()


def test_housekeeping_waits_for_a_backup(scene: Scene) -> None:
    root = scene.hub.settings.data_dir
    left = root / "repos/aa/0123456789abcdef012345aa.gone"
    left.mkdir(parents=True)
    with data_folder.without_housekeeping(root):
        tidy(scene)
        assert left.exists()
    tidy(scene)
    assert not left.exists()


@pytest.mark.one_engine
def test_clones_work_during_housekeeping(scene: Scene) -> None:
    work = scene.clone("one")
    for number in range(5):
        work.commit(f"{number}.txt")
        work.git("push", "-q", "origin", "main")
    copy = scene.folder / "copy"
    run_git(scene.folder, "clone", "-q", "--bare", scene.url(), str(copy))
    tidy(scene)
    work.commit("last.txt")
    work.git("push", "-q", "origin", "main")
    assert run_git(copy, "fetch", "-q", "origin", "main:main").returncode == 0
    assert WorkingCopy(copy).head("main") == work.head()


def test_large_file_is_deleted_a_day_after_the_last_repo_that_has_it(scene: Scene) -> None:
    shared, own, uploaded_again = (b"large %d" % number for number in range(3))
    for name in ("one", "two"):
        create_repo(scene.client, name)
        send_large(scene.client, f"ada/{name}", shared)
    files = scene.hub.settings.data_dir / "lfs"
    oids = [send_large(scene.client, "ada/one", content) for content in (shared, own, uploaded_again)]
    at = [files / oid[:2] / oid[2:4] / oid for oid in oids]
    tidy(scene)
    assert scene.client.request("DELETE", "/api/repos/delete", json={"name": "one"}).status_code == 200
    tidy(scene)
    scene.hub.clock.advance(23 * 3600)
    send_large(scene.client, "ada/two", uploaded_again)
    tidy(scene)
    assert [path.exists() for path in at] == [True, True, True], "a file may be on its way to a repo"
    scene.hub.clock.advance(3600)
    tidy(scene)
    assert [path.exists() for path in at] == [True, False, True]
    # It can be uploaded again.
    send_large(scene.client, "ada/two", own)
    assert at[1].exists()


def test_files_that_an_earlier_version_moved_are_moved_back(scene: Scene) -> None:
    oid = send_large(scene.client, "ada/tiny", b"moved")
    files = scene.hub.settings.data_dir / "lfs"
    place, moved = files / oid[:2] / oid[2:4] / oid, files / "going" / oid
    moved.parent.mkdir()
    place.rename(moved)
    tidy(scene)
    assert (place.exists(), moved.exists()) == (True, False)


@pytest.mark.one_engine
def test_files_that_are_not_of_the_hub_are_not_deleted(scene: Scene) -> None:
    foreign = scene.hub.settings.data_dir / "lfs/ab/notes.txt"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("of the operator")
    tidy(scene)
    scene.hub.clock.advance(25 * 3600)
    tidy(scene)
    assert foreign.exists()
