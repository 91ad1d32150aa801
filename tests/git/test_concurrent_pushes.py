"""A hundred concurrent pushes and commits to one branch: each succeeds or is rejected, and nothing is lost."""

import random
import shutil

from tests.bed.concurrency import run_concurrently
from tests.bed.git import WorkingCopy, run_git
from tests.bed.repos import send_commit
from tests.git.conftest import Scene

MAIN = "refs/heads/main"
# By git; over HTTP, on any parent; over HTTP, only on the parent that the sender saw.
PUSHES, COMMITS, CAREFUL = 30, 35, 35
IMPATIENCE = 0.3


def push_until_it_lands(work: WorkingCopy, number: int, tries: int = 60) -> list[str]:
    """The commits of all acknowledged pushes."""
    chance = random.Random(number)
    work.commit(f"{number}.txt", f"{number}\n")
    for _ in range(tries):
        done = run_git(work.folder, "push", "-q", "origin", "HEAD:main")
        if done.returncode == 0:
            return [work.head()]
        assert any(reason in done.stderr for reason in ("fetch first", "non-fast-forward")), done.stderr
        # Somebody else was faster, or the request timed out.
        if chance.random() < IMPATIENCE:
            return []
        work.git("fetch", "-q", "origin", "main")
        work.git("rebase", "-q", "FETCH_HEAD")
    return []


def commit_on_what_is_seen(scene: Scene, number: int, tries: int = 60) -> list[str]:
    chance = random.Random(number)
    for _ in range(tries):
        seen = scene.client.get("/api/models/ada/tiny").json()["sha"]
        answer = send_commit(scene.client, "ada/tiny", {f"careful-{number}.txt": b"x\n"}, parent=seen)
        if answer.status_code == 200:
            return [answer.json()["commitOid"]]
        assert answer.status_code == 412, answer.text
        if chance.random() < IMPATIENCE:
            return []
    return []


def test_concurrent_changes_of_one_branch_lose_nothing(scene: Scene) -> None:
    first = scene.clone("copy-0")
    copies = [first, *(WorkingCopy(scene.folder / f"copy-{number}") for number in range(1, PUSHES))]
    for copy in copies[1:]:
        shutil.copytree(first.folder, copy.folder)

    def over_http(number: int) -> list[str]:
        answer = send_commit(scene.client, "ada/tiny", {f"http-{number}.txt": b"x\n"})
        assert answer.status_code == 200, answer.text
        return [answer.json()["commitOid"]]

    calls = [lambda work=work, number=number: push_until_it_lands(work, number) for number, work in enumerate(copies)]
    calls += [lambda number=number: over_http(number) for number in range(COMMITS)]  # type: ignore[misc]
    calls += [lambda number=number: commit_on_what_is_seen(scene, number) for number in range(CAREFUL)]  # type: ignore[misc]
    landed = {sha for found in run_concurrently(calls) for sha in found}  # type: ignore[arg-type]
    updates = [event["updatedRefs"] for event in scene.events()[1:]]
    assert all(len(update) == 1 and update[0]["ref"] == MAIN for update in updates)
    chain = [(update[0]["oldSha"], update[0]["newSha"]) for update in updates]
    assert {new for _, new in chain} == landed, "an event for each that was acknowledged, and for no other"
    assert all(chain[position][1] == chain[position + 1][0] for position in range(len(chain) - 1))
    final = scene.clone("final")
    assert final.head() == chain[-1][1] == scene.refs()[MAIN]
    history = final.git("rev-list", "--first-parent", "HEAD").split()
    assert [new for _, new in reversed(chain)] == history[: len(chain)], "linear, in the order of the events"
    assert final.git("rev-list", "--min-parents=2", "HEAD") == ""
    assert run_git(final.folder, "fsck", "--strict").returncode == 0
    assert scene.in_quarantine == []


def test_commits_wait_for_each_other(scene: Scene) -> None:
    """Each is built on its branch once: the second waits, and writes no unused objects."""
    texts = [{f"{number}.txt": b"x\n"} for number in range(COMMITS)]
    done = run_concurrently([lambda files=files: send_commit(scene.client, "ada/tiny", files) for files in texts])  # type: ignore[misc]
    assert {answer.status_code for answer in done} == {200}
    assert len(scene.events()) == 1 + COMMITS
    # Updates the refs on disk.
    scene.clone("copy")
    folder = scene.repo_folder(scene.client.get("/api/models/ada/tiny").json()["_id"])
    found = run_git(folder, "fsck", "--unreachable", "--no-reflogs")
    assert (found.returncode, found.stdout) == (0, "")


def test_same_push_twice_concurrently_is_one_event(scene: Scene) -> None:
    one = scene.clone("one")
    one.commit()
    two = scene.clone("two")
    two.git("fetch", "-q", str(one.folder), "main")
    two.git("reset", "-q", "--hard", "FETCH_HEAD")
    done = run_concurrently([lambda work=work: run_git(work.folder, "push", "origin", "main") for work in (one, two)])  # type: ignore[misc]
    assert [entry.returncode for entry in done].count(0) >= 1
    assert len(scene.events()) == 2
    assert scene.clone("three").head() == one.head()
