"""kill -9 during pushes and commits: git, database and events agree, and no acknowledged change is lost."""

import random

import pytest
from tests.bed.git import repo_url, run_git
from tests.bed.processes import TEST_BUILD, hub_process, until
from tests.faults.conftest import Store
from tests.faults.pushes import MAIN, PushLoad, check, create_repo

pytestmark = pytest.mark.faults

FAILPOINTS = (
    "push-objects-landed",
    "commit-objects-landed",
    "refs-before-move",
    "storage.before_commit",
    "storage.after_commit",
    "refs-after-move",
    "push-before-report",
)


def test_kill_9_of_the_whole_hub_during_pushes_loses_nothing(store: Store, fault_count: int) -> None:
    chance = random.Random(fault_count)
    repo = create_repo(store)
    acknowledged: list[tuple[str, str]] = []
    for number in range(fault_count):
        with hub_process(store.folder, *store.flags, program=TEST_BUILD) as hub:
            load = PushLoad(repo, hub.url, f"r{number}").start()
            load.wait_for(chance.randint(1, 12))
            hub.kill_all()
            load.stop()
        acknowledged += load.acknowledged
        check(repo, acknowledged)
    with hub_process(store.folder, *store.flags) as hub:
        shown = run_git(store.folder, "ls-remote", repo_url(hub.url, "ada/tiny")).stdout
        assert {tuple(line.split("\t")[::-1]) for line in shown.splitlines()} >= {
            (ref, sha) for ref, sha in acknowledged if ref.startswith("refs/tags/")
        }
        copy = store.folder / "copy"
        assert (
            run_git(store.folder, "clone", "-q", "--mirror", repo_url(hub.url, "ada/tiny"), str(copy)).returncode == 0
        )
        assert run_git(copy, "fsck", "--strict").returncode == 0
        assert run_git(copy, "rev-parse", MAIN).returncode == 0
    assert store.doctor_failures() == []


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_death_at_the_worst_moments_loses_no_push(store: Store, fault_count: int, failpoint: str) -> None:
    """The web process dies at the failpoint; its parent starts another, which dies at the same failpoint."""
    repo = create_repo(store)
    acknowledged: list[tuple[str, str]] = []
    for number in range(max(1, fault_count // 10)):
        armed = {"TEST_FAILPOINTS": f"{failpoint}:{number % 3 + 1}"}
        with hub_process(store.folder, *store.flags, "--deliver", "off", program=TEST_BUILD, **armed) as hub:
            load = PushLoad(repo, hub.url, f"m{number}").start()
            deaths = (store.folder / "stderr.log").read_text().count("ended with status -9")
            until(lambda: hub.errors.count("ended with status -9") > deaths + 1, 300)
            hub.kill_all()
            load.stop()
        acknowledged += load.acknowledged
        check(repo, acknowledged)
    assert store.doctor_failures() == []
