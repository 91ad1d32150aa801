"""Large files in a push: too large for git, or a pointer to a file that the repo does not have; large messages."""

import hashlib

import pytest
from tests.bed.packs import bands, blob, commands, commit, pack, push, tree
from tests.bed.people import api
from tests.bed.repos import create_repo, send_large
from tests.git.conftest import Scene

from hubgate.server.hub.git.objects import pointer_text
from hubgate.server.hub.repos.push import MAX_FILE_BYTES

MAIN = "refs/heads/main"


@pytest.mark.one_engine
def test_too_large_file_is_rejected(scene: Scene) -> None:
    work = scene.clone("one")
    work.git("config", "core.compression", "1")
    work.commit("data/weights.dat", b"\0" * (MAX_FILE_BYTES + 1))
    # Deleted at the head, but still in the history.
    work.git("rm", "-q", "data/weights.dat")
    work.git("commit", "-q", "-m", "never mind")
    said = work.fails("push", "origin", "main")
    assert "data/weights.dat has 104,857,601 bytes" in said
    assert "git lfs" in said
    assert scene.in_quarantine == []
    assert len(scene.events()) == 1


@pytest.mark.one_engine
@pytest.mark.parametrize("command", [["commit", "-q", "--allow-empty"], ["tag", "-a", "release"]])
def test_too_large_message_is_rejected(scene: Scene, command: list[str]) -> None:
    """Commits and tags are read whole whenever refs are listed, which anyone may request (attack O70)."""
    work = scene.clone("one")
    work.write("message", "a long line\n" * 100_000)
    work.git(*command, "-F", "message")
    said = work.fails("push", "--follow-tags", "origin", "main")
    assert "is a commit or tag of 1,2" in said
    assert "At most 1,048,576 bytes are allowed." in said
    assert scene.in_quarantine == []


def test_only_some_of_many_too_large_files_are_named(sqlite_scene: Scene) -> None:
    files = [blob(b"%d" % number + b"\0" * MAX_FILE_BYTES) for number in range(6)]
    root = tree(*(("100644", f"{number}.dat", file) for number, file in enumerate(files)))
    head = commit(root)
    body = commands([(None, head.sha, "refs/heads/large")]) + pack([*files, root, head])
    said = bands(push(sqlite_scene.hub.url, sqlite_scene.token, body).content)
    assert said[2].count(b".dat has 104,857,601 bytes") == 5
    assert b"and 1 more" in said[2]
    assert b"ng refs/heads/large refused, see above" in said[1]


def test_pointer_needs_its_file(scene: Scene) -> None:
    content = b"weights" * 1000
    oid = hashlib.sha256(content).hexdigest()
    work = scene.clone("one")
    work.commit("model.safetensors", pointer_text(oid, len(content)))
    said = work.fails("push", "origin", "main")
    assert f"model.safetensors points to the large file {oid}, which was never uploaded to this repo" in said
    # Uploaded to another repo: knowing its hash is not enough.
    create_repo(scene.client, "other")
    send_large(scene.client, "ada/other", content)
    assert "never uploaded" in work.fails("push", "origin", "main")
    send_large(scene.client, "ada/tiny", content)
    work.git("push", "-q", "origin", "main")
    with api(scene.hub) as anyone:
        found = anyone.get("/ada/tiny/resolve/main/model.safetensors", follow_redirects=True)
        assert found.content == content


@pytest.mark.one_engine
def test_pointer_with_a_wrong_size_is_rejected(scene: Scene) -> None:
    content = b"weights" * 1000
    oid = send_large(scene.client, "ada/tiny", content)
    work = scene.clone("one")
    work.commit("model.safetensors", pointer_text(oid, len(content) + 1))
    assert "has 7,001 bytes, but it has 7,000" in work.fails("push", "origin", "main")


@pytest.mark.one_engine
def test_file_that_only_resembles_a_pointer_is_accepted(scene: Scene) -> None:
    work = scene.clone("one")
    work.commit("notes.txt", b"about: " + pointer_text("0" * 64, 5))
    work.git("push", "-q", "origin", "main")
    assert scene.refs() == {MAIN: work.head()}


def test_one_pointer_of_many_without_its_file_is_rejected(scene: Scene) -> None:
    contents = [b"weights %d" % number for number in range(130)]
    oids = [send_large(scene.client, "ada/tiny", content) for content in contents[:-1]]
    oids.append(hashlib.sha256(contents[-1]).hexdigest())
    files = [blob(pointer_text(oid, len(content))) for oid, content in zip(oids, contents, strict=True)]
    for count, reason in ((130, "refused, see above"), (129, None)):
        root = tree(*(("100644", f"{number:03d}.bin", file) for number, file in enumerate(files[:count])))
        head = commit(root)
        body = commands([(None, head.sha, "refs/heads/many")]) + pack([*files[:count], root, head])
        said = bands(push(scene.hub.url, scene.token, body).content)
        assert (b"129.bin points to the large file" in said[2]) == (reason is not None)
        assert (b"ng refs/heads/many refused" in said[1]) == (reason is not None)


@pytest.mark.one_engine
@pytest.mark.limits(pushed_objects=5)
def test_push_with_too_many_objects_is_rejected(scene: Scene) -> None:
    files = [blob(b"%d" % number) for number in range(6)]
    root = tree(*(("100644", f"{number}.txt", file) for number, file in enumerate(files)))
    head = commit(root)
    body = commands([(None, head.sha, "refs/heads/many")]) + pack([*files, root, head])
    assert (
        b"ng refs/heads/many a push may have at most 5 objects"
        in bands(push(scene.hub.url, scene.token, body).content)[1]
    )
    assert scene.in_quarantine == []
