"""A gated repo hides its files from users without access, even if a pull request gives one the name README.md."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.bed import packs
from tests.bed.people import api, browser_of, create_token, create_user
from tests.bed.repos import create_commit, create_repo, head_of, send_commit, send_large, send_lines
from tests.git.conftest import Scene

from hubgate.server.hub.git.objects import pointer_text

SECRET = b"only for those who were let in\n"
PULL_REQUEST = "refs%2Fpr%2F1"


def test_pull_request_does_not_expose_gated_files(scene: Scene) -> None:
    create_repo(scene.client, "gated")
    create_commit(
        scene.client, "ada/gated", {"README.md": b"# What it is\n", "secret.txt": SECRET, "weights.bin": SECRET}
    )
    assert scene.client.put("/api/models/ada/gated/settings", json={"gated": "manual"}).status_code == 200
    bob = create_user(scene.hub, "bob")
    with api(scene.hub, create_token(scene.hub, bob)) as client:
        opened = send_commit(client, "ada/gated", {"idea.txt": b"an idea\n"}, query="?create_pr=1")
        assert opened.status_code == 200, opened.text
        ids = {entry["path"]: entry["oid"] for entry in client.get("/api/models/ada/gated/tree/main").json()}
        # File names and git ids are public, which suffices for a tree that calls one of them README.md.
        for name in ("secret.txt", "weights.bin"):
            before = head_of(client, "ada/gated", "refs/pr/1")
            tree = packs.Object(packs.TREE, b"100644 README.md\0" + bytes.fromhex(ids[name]))
            tip = packs.commit(tree, before)
            body = packs.commands([(before, tip.sha, "refs/pr/1")]) + packs.pack([tree, tip])
            token = client.headers["authorization"].removeprefix("Bearer ")
            assert packs.report_of(packs.push(scene.hub.url, token, body, "ada/gated"))[1] == "ok refs/pr/1"
            for rev in (PULL_REQUEST, tip.sha, tip.sha[:10]):
                answer = client.get(f"/ada/gated/resolve/{rev}/README.md")
                assert (answer.status_code, answer.headers.get("x-error-code")) == (403, "GatedRepo"), rev
        with browser_of(scene.hub, bob) as browser:
            assert SECRET.decode().strip() not in browser.get(f"/ada/gated/blob/{PULL_REQUEST}/README.md").text
        # The README.md of the branch stays readable under every name of the revision.
        for rev in ("main", "HEAD", "refs%2Fheads%2Fmain", head_of(client, "ada/gated")):
            assert client.get(f"/ada/gated/resolve/{rev}/README.md").text == "# What it is\n", rev


@pytest.mark.one_engine
def test_copy_within_the_repo_stays_gated(scene: Scene) -> None:
    """A pull request cannot copy a large file by its SHA-256, which may be known from elsewhere. It can contain the
    same file if its author sends it.
    """
    create_repo(scene.client, "gated")
    create_commit(scene.client, "ada/gated", {"weights.bin": SECRET})
    oid = scene.client.get("/api/models/ada/gated/tree/main").json()[-1]["lfs"]["oid"]
    assert scene.client.put("/api/models/ada/gated/settings", json={"gated": "auto"}).status_code == 200
    with api(scene.hub, create_token(scene.hub, create_user(scene.hub, "bob"))) as client:
        named = ("lfsFile", {"path": "README.md", "algo": "sha256", "oid": oid})
        assert send_lines(client, "ada/gated", named, query="?create_pr=1").status_code == 422
        assert send_large(client, "ada/gated", SECRET) == oid
        assert send_lines(client, "ada/gated", named, query="?create_pr=1").status_code == 200
        assert client.get(f"/ada/gated/resolve/{PULL_REQUEST}/README.md").status_code == 403


def gated_repo(scene: Scene, files: dict[str, bytes]) -> dict[str, dict[str, Any]]:
    """Create the repo and return the public description of each file."""
    create_repo(scene.client, "gated")
    create_commit(scene.client, "ada/gated", files)
    assert scene.client.put("/api/models/ada/gated/settings", json={"gated": "manual"}).status_code == 200
    with api(scene.hub) as visitor:
        return {entry["path"]: entry for entry in visitor.get("/api/models/ada/gated/tree/main").json()}


@pytest.fixture
def bob(scene: Scene) -> Iterator[httpx.Client]:
    with api(scene.hub, create_token(scene.hub, create_user(scene.hub, "bob"))) as client:
        yield client


def push_tree(scene: Scene, client: httpx.Client, tree: packs.Object, *more: bytes) -> httpx.Response:
    before = head_of(client, "ada/gated", "refs/pr/1")
    tip = packs.commit(tree, before)
    body = packs.commands([(before, tip.sha, "refs/pr/1")]) + packs.pack([tree, tip], *more)
    token = client.headers["authorization"].removeprefix("Bearer ")
    return packs.push(scene.hub.url, token, body, "ada/gated")


def copied(base: dict[str, Any], base_size: int, start: int, length: int, then: bytes = b"") -> bytes:
    """A blob in a pack: some bytes of a blob of the repo, which the sender cannot read, and then some more."""
    copy = bytes([0x80 | 0x01 | 0x10, start, length])
    insert = bytes([len(then)]) + then if then else b""
    delta = packs.varint(base_size) + packs.varint(length + len(then)) + copy + insert
    return packs.entry(packs.REF_DELTA, delta, base_reference=bytes.fromhex(base["oid"]))


@pytest.mark.one_engine
def test_delta_does_not_reveal_the_hash_of_a_gated_large_file(scene: Scene, bob: httpx.Client) -> None:
    """The error for a pointer with the wrong size contains its hash, which may have been copied from the repo."""
    files = gated_repo(scene, {"weights.bin": SECRET})
    oid = scene.client.get("/api/models/ada/gated/tree/main").json()[-1]["lfs"]["oid"]
    assert send_commit(bob, "ada/gated", {"idea.txt": b"an idea\n"}, query="?create_pr=1").status_code == 200
    pointer = pointer_text("0" * 64, files["weights.bin"]["size"])
    wrong = copied(files["weights.bin"], len(pointer), 0, pointer.index(b"size "), b"size 1\n")
    answer = push_tree(scene, bob, packs.tree(), wrong)
    assert oid not in answer.text
    assert packs.report_of(answer)[0] == "unpack objects are missing"


@pytest.mark.one_engine
def test_delta_does_not_confirm_the_content_of_a_gated_file(scene: Scene, bob: httpx.Client) -> None:
    """A push would succeed only if the guess of a byte is right."""
    secret = gated_repo(scene, {"secret.txt": SECRET})["secret.txt"]
    assert send_commit(bob, "ada/gated", {"idea.txt": b"an idea\n"}, query="?create_pr=1").status_code == 200
    reports = set()
    for guess in (b"x", SECRET[:1]):
        tree = packs.tree(("100644", "guess", packs.blob(guess)))
        reports.add(packs.report_of(push_tree(scene, bob, tree, copied(secret, secret["size"], 0, 1)))[0])
    assert reports == {"unpack objects are missing"}


@pytest.mark.one_engine
def test_git_of_users_without_access_is_asked_for_full_packs(scene: Scene, bob: httpx.Client) -> None:
    """Otherwise git sends deltas to files that it fetched before the gate was closed."""
    create_repo(scene.client, "gated")
    lines = b"".join(b"line %d of a long file\n" % number for number in range(500))
    create_commit(scene.client, "ada/gated", {"long.txt": lines})
    token = bob.headers["authorization"].removeprefix("Bearer ")
    work = scene.clone("work", "ada/gated", token)
    assert scene.client.put("/api/models/ada/gated/settings", json={"gated": "manual"}).status_code == 200
    assert send_commit(bob, "ada/gated", {"idea.txt": b"an idea\n"}, query="?create_pr=1").status_code == 200
    work.commit("long.txt", lines.decode() + "one more\n")
    work.git("push", "--force", "origin", "HEAD:refs/pr/1")
    assert head_of(bob, "ada/gated", "refs/pr/1") == work.head()
    # Users with access send deltas as before.
    refs = "/ada/gated/info/refs?service=git-receive-pack"
    assert b" no-thin" in bob.get(refs).content
    grant = scene.client.post("/api/models/ada/gated/user-access-request/grant", json={"user": "bob"})
    assert grant.status_code == 200
    assert b" no-thin" not in bob.get(refs).content
    assert b" no-thin" not in scene.client.get(refs).content


@pytest.mark.one_engine
def test_planned_upload_does_not_confirm_lines_of_a_gated_file(scene: Scene, bob: httpx.Client) -> None:
    """A pull request calls the file .gitignore; a planned upload is ignored if a line of that file matches its path."""
    secret = gated_repo(scene, {"secret.txt": SECRET})["secret.txt"]
    assert send_commit(bob, "ada/gated", {"idea.txt": b"an idea\n"}, query="?create_pr=1").status_code == 200
    tree = packs.Object(packs.TREE, b"100644 .gitignore\0" + bytes.fromhex(secret["oid"]))
    assert packs.report_of(push_tree(scene, bob, tree))[1] == "ok refs/pr/1"
    planned = {"files": [{"path": path, "size": 1} for path in (SECRET.decode().strip(), "something else")]}

    def ignored(client: httpx.Client) -> list[bool]:
        response = client.post(f"/api/models/ada/gated/preupload/{PULL_REQUEST}", json=planned)
        assert response.status_code == 200, response.text
        return [file["shouldIgnore"] for file in response.json()["files"]]

    assert ignored(bob) == [False, False]
    assert ignored(scene.client) == [True, False]


@pytest.mark.one_engine
def test_conflicts_do_not_confirm_lines_of_a_gated_file(scene: Scene, bob: httpx.Client) -> None:
    """A pull request from an older commit merges without conflicts if it contains the lines around a later change."""
    lines = [b"line %d\n" % number for number in range(10)]
    gated_repo(scene, {"secret.txt": b"".join(lines)})
    old = head_of(scene.client, "ada/gated")
    create_commit(scene.client, "ada/gated", {"secret.txt": b"".join([b"changed\n", *lines[1:]])})
    assert send_commit(bob, "ada/gated", {"idea.txt": b"an idea\n"}, query="?create_pr=1").status_code == 200
    token = bob.headers["authorization"].removeprefix("Bearer ")
    answers = {"bob": set[str](), "ada": set[str](), "page": set[str]()}
    for guess in (b"line 0\nline 1\nline 2\n", b"wrong\nwrong\nwrong\n"):
        guessed = packs.blob(guess + b"x\n" * 7)
        tree = packs.tree(("100644", "secret.txt", guessed))
        tip, before = packs.commit(tree, old), head_of(bob, "ada/gated", "refs/pr/1")
        body = packs.commands([(before, tip.sha, "refs/pr/1")]) + packs.pack([guessed, tree, tip])
        assert packs.report_of(packs.push(scene.hub.url, token, body, "ada/gated"))[1] == "ok refs/pr/1"
        for name, client in (("bob", bob), ("ada", scene.client)):
            details = client.get("/api/models/ada/gated/discussions/1").json()
            answers[name].add(str(details["filesWithConflicts"]))
        with browser_of(scene.hub) as browser:
            page = browser.get("/ada/gated/discussions/1").text
            assert "only users with access can see whether this can be merged" in page
            answers["page"].add(str("conflicts with" in page))
    assert answers == {"bob": {"False"}, "ada": {"[]", "['secret.txt']"}, "page": {"False"}}
