"""O72: the sweep of guests' storage visits every repo, even if it fails in another one."""

import shutil
from pathlib import Path

from tests.bed.engines import Engine
from tests.bed.git import clone_repo
from tests.bed.public_repo import API, hub_with_public_repo
from tests.bed.repos import create_repo

from hubgate.server.hub.context import Limits


def test_o72_failing_repos_do_not_stop_the_sweep(engine: Engine, tmp_path: Path) -> None:
    with hub_with_public_repo(engine, tmp_path, Limits(swept_repos=1), guest_bytes="1000000") as scene:
        scene.create_pull_request({"1.txt": b"1" * 100_000})
        # Repos are visited in the order of their creation.
        scene.hub.clock.advance(1)
        create_repo(scene.ada, "other")
        assert scene.propose({"2.txt": b"2" * 800_000}, repo="ada/other").status_code == 200
        work = clone_repo(scene.hub, "ada/other", tmp_path / "adas", scene.ada_token)
        work.git("fetch", "-q", "origin", "refs/pr/1")
        work.git("push", "-q", "origin", "FETCH_HEAD:main")
        # Git fails in the first repo of every round.
        (oldest, _) = sorted((tmp_path / "data/repos").glob("??/*.git"), key=lambda folder: folder.stem)
        away = oldest / "objects-away"
        (oldest / "objects").rename(away)
        (oldest / "objects").mkdir()
        scene.run_housekeeping()
        assert scene.propose({"3.txt": b"3" * 800_000}, repo="ada/other").status_code == 200
        assert "will be checked later" in scene.hub.log
        shutil.rmtree(oldest / "objects")
        away.rename(oldest / "objects")
        assert scene.ada.get(f"{API}/revision/main").status_code == 200
        adas = scene.clone("tiny", scene.ada_token)
        adas.git("fetch", "-q", "origin", "refs/pr/1")
        adas.git("push", "-q", "origin", "FETCH_HEAD:main")
        assert scene.propose({"4.txt": b"4" * 180_000}).status_code == 403
        scene.run_housekeeping()
        assert scene.propose({"4.txt": b"4" * 180_000}).status_code == 200, "a repo that failed is tried again"
