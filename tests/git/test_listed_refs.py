"""The list of refs that every clone and fetch asks for, which the hub answers without a git program."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

import httpx
import pytest
from tests.bed.git import WorkingCopy, run_git
from tests.bed.packs import pkt_line
from tests.git.conftest import Scene

from hubgate.server.hub.repos import store
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

FLUSH, DELIMITER = b"0000", b"0001"
AGENT = [b"agent=git/2.39.5", b"object-format=sha1"]
PREFIXES = [b"ref-prefix HEAD", b"ref-prefix refs/heads/", b"ref-prefix refs/tags/"]
PROGRAMS: list[Sequence[str]] = []


def _notice(event: str, arguments: tuple[object, ...]) -> None:
    if event == "subprocess.Popen":
        PROGRAMS.append([str(word) for word in arguments[1]])  # type: ignore[attr-defined]


# An audit hook cannot be removed; it costs little.
sys.addaudithook(_notice)


def request(*arguments: bytes, capabilities: Sequence[bytes] = AGENT, command: bytes = b"command=ls-refs") -> bytes:
    head = b"".join(pkt_line(line + b"\n") for line in (command, *capabilities))
    return head + DELIMITER + b"".join(pkt_line(line + b"\n") for line in arguments) + FLUSH


REQUESTS = {
    "a clone": request(b"peel", b"symrefs", b"unborn", *PREFIXES),
    "ls-remote": request(b"peel", b"symrefs"),
    "one branch": request(b"ref-prefix refs/heads/odd"),
    "no match": request(b"ref-prefix refs/nothing"),
    "only ids": request(),
    "without capabilities": request(b"peel", capabilities=[]),
    "without line ends": request(b"peel").replace(b"0009peel\n", b"0008peel"),
    "no arguments at all": pkt_line(b"command=ls-refs\n") + FLUSH,
    "many prefixes": request(*(b"ref-prefix refs/tags/%d" % number for number in range(500))),
    "longer than is read ahead": request(b"peel", *(b"ref-prefix refs/tags/%0900d" % n for n in range(40))),
    "an unknown argument": request(b"peel", b"unknown"),
    "another hash": request(b"peel", capabilities=[b"object-format=sha256"]),
    "another command": request(command=b"command=other"),
    "two messages": request(b"peel") + request(b"symrefs"),
    "no text": request(b"ref-prefix \xff"),
    "a NUL": request(b"ref-prefix refs/heads/main\0x"),
}


@pytest.fixture
def tagged(scene: Scene) -> Scene:
    """With a branch, a pull request, and every kind of tag."""
    work = scene.clone("tagged")
    first = work.head()
    work.commit("a.txt")
    work.git("tag", "light", first)
    work.git("tag", "-a", "-m", "a tag", "annotated")
    work.git("tag", "-a", "-m", "a tag of a tag", "nested", "annotated")
    work.git("tag", "-a", "-m", "a tag of a file", "file", "HEAD:a.txt")
    work.git("push", "-q", "origin", "HEAD:main", "HEAD:odd", "light", "annotated", "nested", "file")
    pull_request = {"title": "a change", "pullRequest": True}
    assert scene.client.post("/api/models/ada/tiny/discussions", json=pull_request).status_code in (200, 201)
    return scene


def answer_of_hub(scene: Scene, body: bytes) -> httpx.Response:
    headers = {"content-type": "application/x-git-upload-pack-request", "git-protocol": "version=2"}
    return scene.client.post("/ada/tiny/git-upload-pack", content=body, headers=headers)


def answer_of_git(scene: Scene, body: bytes) -> bytes:
    """From the hub's folder, after refs have been copied for git programs."""
    assert scene.client.get("/ada/tiny/info/refs?service=git-upload-pack").status_code == 200
    (folder,) = scene.hub.settings.data_dir.glob("repos/??/*.git")
    done = subprocess.run(
        ["git", "upload-pack", "--strict", "--stateless-rpc", str(folder)],
        env={"GIT_PROTOCOL": "version=2", "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"},
        input=body,
        capture_output=True,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize("body", REQUESTS.values(), ids=REQUESTS.keys())
def test_answers_are_those_of_git(tagged: Scene, body: bytes) -> None:
    answer, expected = answer_of_hub(tagged, body), answer_of_git(tagged, body)
    assert (answer.status_code, answer.content if expected else b"") == (200 if expected else 400, expected)


def nested_tags(work: WorkingCopy) -> None:
    work.git("tag", "-a", "-m", "level 0", "level-0")
    for level in range(12):
        work.git("tag", "-a", "-m", f"level {level + 1}", f"level-{level + 1}", f"level-{level}")


def many_tags(work: WorkingCopy) -> None:
    for number in range(120):
        work.git("tag", "-a", "-m", "one of many", f"many-{number}")


def many_branches(work: WorkingCopy) -> None:
    # A push may change at most 1,000 refs.
    for part in ("first", "second"):
        refs = "".join(f"create refs/heads/{part}-{number} HEAD\n" for number in range(600))
        assert run_git(work.folder, "update-ref", "--stdin", given=refs.encode()).returncode == 0
        work.git("push", "-q", "--all")


def large_tag(work: WorkingCopy) -> None:
    (work.folder / "message").write_text("a long line\n" * 10_000)
    work.git("tag", "-a", "-F", "message", "large")


@pytest.mark.parametrize("create", [nested_tags, many_tags, many_branches, large_tag])
def test_unusual_refs_are_listed_by_git(tagged: Scene, create: Callable[[WorkingCopy], None]) -> None:
    """Reading them in the web process would delay the requests of others."""
    work = tagged.clone("unusual")
    create(work)
    work.git("push", "-q", "--all")
    work.git("push", "-q", "--tags")
    tagged.client.get("/ada/tiny/info/refs?service=git-upload-pack", headers={"git-protocol": "version=2"})
    PROGRAMS.clear()
    answer = answer_of_hub(tagged, REQUESTS["a clone"])
    assert [program for program in PROGRAMS if "upload-pack" in program] != []
    assert (answer.status_code, answer.content) == (200, answer_of_git(tagged, REQUESTS["a clone"]))


def test_repo_deleted_during_the_request_is_not_listed_as_empty(scene: Scene) -> None:
    """`git fetch --prune` would delete all branches that the client knows."""

    def body() -> Iterator[bytes]:
        message = REQUESTS["a clone"]
        yield message[:20]
        deleted = scene.client.request("DELETE", "/api/repos/delete", json={"name": "tiny"})
        assert deleted.status_code == 200
        yield message[20:]

    headers = {"content-type": "application/x-git-upload-pack-request", "git-protocol": "version=2"}
    with scene.hub.client() as other:
        answer = other.post("/ada/tiny/git-upload-pack", content=body(), headers=headers)
    assert answer.status_code == 404


def test_default_branch_that_does_not_exist_is_announced(scene: Scene) -> None:
    sha = scene.refs()["refs/heads/main"]
    repo_id = scene.client.get("/api/models/ada/tiny").json()["_id"]

    async def delete(hub: Hub) -> bool:
        return await hub.db.write(lambda tx: store.move_ref(tx, repo_id, "refs/heads/main", sha, None))

    assert scene.hub.call(delete)
    for body in (request(b"symrefs", b"unborn"), request(b"symrefs"), request(b"unborn"), request()):
        answer = answer_of_hub(scene, body)
        assert answer.status_code == 200
        assert answer.content == (
            pkt_line(b"unborn HEAD symref-target:refs/heads/main\n") + FLUSH
            if b"symrefs" in body and b"unborn" in body
            else FLUSH
        )


def test_fetch_of_nothing_new_starts_no_program(tagged: Scene) -> None:
    work = tagged.clone("work")
    PROGRAMS.clear()
    work.git("fetch", "-q", "origin")
    listed = work.git("ls-remote", "--symref", "origin")
    assert [program for program in PROGRAMS if "upload-pack" in program] == []
    assert "ref: refs/heads/main\tHEAD" in listed
    assert "refs/tags/annotated^{}" in listed
    tagged.clone("again").commit("b.txt")
    run_git(tagged.folder / "again", "push", "-q", "origin", "HEAD:main")
    PROGRAMS.clear()
    work.git("fetch", "-q", "origin")
    assert len([program for program in PROGRAMS if "upload-pack" in program]) == 1
    assert work.head("origin/main") == tagged.refs()["refs/heads/main"]
