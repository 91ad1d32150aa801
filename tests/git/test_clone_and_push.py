"""Clone, fetch and push with the git program, in each protocol version."""

import hashlib

import pytest
from tests.bed.git import WorkingCopy, run_git
from tests.bed.packs import blob, commands, commit, pack, push, report_of, tree
from tests.bed.people import api
from tests.bed.repos import create_commit, create_repo
from tests.git.conftest import Scene

PROTOCOLS = ("0", "1", "2")
MAIN = "refs/heads/main"


@pytest.mark.one_engine
@pytest.mark.parametrize("version", PROTOCOLS)
def test_pushed_commits_are_cloned_and_fetched(scene: Scene, version: str) -> None:
    one = scene.clone("one")
    one.git("config", "protocol.version", version)
    head = one.commit("README.md", "---\ntags: [tiny]\n---\n# Tiny\n")
    pushed = run_git(one.folder, "push", "--progress", "origin", "main")
    assert pushed.returncode == 0, pushed.stderr
    assert f"remote: {scene.hub.url}/ada/tiny" in pushed.stderr
    assert scene.refs() == {MAIN: head}
    two = scene.clone("two", "ada/tiny.git")
    assert two.head() == head
    later = one.commit("more.txt")
    one.git("push", "-q", "origin", "main")
    two.git("-c", f"protocol.version={version}", "pull", "-q")
    assert two.head() == later
    with api(scene.hub) as anyone:
        found = anyone.get("/api/models/ada/tiny").json()
        assert (found["sha"], "tiny" in found["tags"]) == (later, True)
        assert anyone.get("/ada/tiny/resolve/main/README.md").text.endswith("# Tiny\n")


@pytest.mark.one_engine
@pytest.mark.parametrize(("repo_type", "prefix"), [("dataset", "datasets/"), ("space", "spaces/")])
def test_other_repo_types_work(scene: Scene, repo_type: str, prefix: str) -> None:
    create_repo(scene.client, "rows", repo_type)
    work = scene.clone("one", f"{prefix}ada/rows")
    work.commit("rows.csv", "a,b\n")
    work.git("push", "-q", "origin", "main")
    assert scene.clone("two", f"{prefix}ada/rows.git").head() == work.head()
    assert scene.events("ada/rows", repo_type)[-1]["repo"]["type"] == repo_type


@pytest.mark.one_engine
def test_commits_over_http_are_fetched(scene: Scene) -> None:
    work = scene.clone("one")
    for number in range(3):
        sha = create_commit(scene.client, "ada/tiny", {f"file-{number}.txt": b"text\n"})
        work.git("pull", "-q")
        assert work.head() == sha
    assert work.git("log", "-1", "--format=%an") == "ada"


@pytest.mark.one_engine
def test_three_refs_are_one_event(scene: Scene) -> None:
    work = scene.clone("one")
    before, head = work.head(), work.commit()
    work.git("tag", "-a", "v1", "-m", "the first")
    tag = work.head("v1")
    work.git("push", "-q", "origin", "main", "main:refs/heads/dev/one", "v1")
    event = scene.events()[-1]
    assert event["event"] == {"action": "update", "scope": "repo.content"}
    assert event["repo"]["headSha"] == head
    assert sorted(event["updatedRefs"], key=lambda update: update["ref"]) == [
        {"ref": "refs/heads/dev/one", "oldSha": None, "newSha": head},
        {"ref": MAIN, "oldSha": before, "newSha": head},
        {"ref": "refs/tags/v1", "oldSha": None, "newSha": tag},
    ]
    assert len(scene.events()) == 2, "the repo was made, and this"
    assert scene.clone("two").head("v1") == tag


@pytest.mark.one_engine
def test_branches_and_tags_are_deleted(scene: Scene) -> None:
    work = scene.clone("one")
    work.git("tag", "v1")
    work.git("push", "-q", "origin", "main:dev", "v1")
    work.git("push", "-q", "origin", ":dev", ":v1")
    assert list(scene.refs()) == [MAIN]
    assert [update["newSha"] for update in scene.events()[-1]["updatedRefs"]] == [None, None]
    assert f"Cannot delete {MAIN}" in work.fails("push", "origin", ":main")
    assert list(scene.refs()) == [MAIN]


@pytest.mark.one_engine
def test_deleting_a_missing_ref_succeeds(scene: Scene) -> None:
    """With a full name git sends zero to zero; cleanup scripts rely on it."""
    work = scene.clone("one")
    done = run_git(work.folder, "push", "origin", ":refs/tags/gone", ":refs/heads/gone")
    assert done.returncode == 0, done.stderr
    assert "refs/tags/gone did not exist" in done.stderr
    assert len(scene.events()) == 1, "nothing happened"
    work.git("push", "-q", "--atomic", "origin", ":refs/tags/gone", "main:dev")
    assert [update["ref"] for update in scene.events()[-1]["updatedRefs"]] == ["refs/heads/dev"]
    assert f"Cannot delete {MAIN}" in work.fails("push", "origin", ":refs/heads/main")


def test_ref_created_since_then_is_not_deleted(scene: Scene) -> None:
    """The client claims that the ref does not exist, but it was created since."""
    scene.clone("one").git("push", "-q", "origin", "main:dev")
    asked = [(None, None, "refs/heads/dev"), (None, scene.refs()[MAIN], "refs/heads/next")]
    answer = push(scene.hub.url, scene.token, commands(asked) + pack([]))
    assert report_of(answer) == ["unpack ok", "ng refs/heads/dev fetch first", "ok refs/heads/next"]
    answer = push(scene.hub.url, scene.token, commands(asked[:1]))
    assert report_of(answer) == ["unpack ok", "ng refs/heads/dev fetch first"]
    assert set(scene.refs()) == {MAIN, "refs/heads/dev", "refs/heads/next"}


@pytest.mark.one_engine
def test_branch_can_become_a_folder_of_branches(scene: Scene) -> None:
    work = scene.clone("one")
    work.git("push", "-q", "origin", "main:dev")
    assert "conflicts with refs/heads/dev" in work.fails("push", "origin", "main:dev/one")
    work.git("push", "-q", "origin", "main:dev/one", ":dev")
    assert set(scene.refs()) == {MAIN, "refs/heads/dev/one"}
    assert "conflicts with" in work.fails("push", "origin", "main:dev")
    scene.clone("two")


@pytest.mark.one_engine
def test_outdated_push_is_rejected_unless_forced(scene: Scene) -> None:
    one, two = scene.clone("one"), scene.clone("two")
    one.commit("one.txt")
    one.git("push", "-q", "origin", "main")
    two.commit("two.txt")
    assert "fetch first" in two.fails("push", "origin", "main")
    two.git("push", "-q", "--force", "origin", "main")
    assert scene.refs() == {MAIN: two.head()}
    # The ref is no longer where the client expects.
    one.commit("three.txt")
    assert "stale info" in one.fails("push", "--force-with-lease", "origin", "main")


@pytest.mark.one_engine
def test_atomic_push_moves_all_refs_or_none(scene: Scene) -> None:
    work = scene.clone("one")
    work.commit()
    said = work.fails("push", "--atomic", "origin", "main", "main:refs/strange/x")
    assert "only branches, tags and pull requests can be pushed" in said
    assert "atomic push failed" in said
    assert len(scene.events()) == 1
    said = work.fails("push", "origin", "main", "main:refs/strange/x")
    assert "only branches, tags and pull requests can be pushed" in said
    assert scene.refs() == {MAIN: work.head()}, "the other one moved"
    work.commit("more.txt")
    work.git("push", "-q", "--atomic", "origin", "main", "main:dev")
    assert len(scene.events()[-1]["updatedRefs"]) == 2


@pytest.mark.one_engine
@pytest.mark.parametrize("options", [("--depth=1",), ("--filter=blob:none",), ("--bare",), ("--single-branch",)])
def test_shallow_and_partial_clones_work(scene: Scene, options: tuple[str, ...]) -> None:
    work = scene.clone("one")
    for number in range(5):
        work.commit("file.txt", f"{number}\n")
    work.git("push", "-q", "origin", "main")
    done = run_git(scene.folder, "clone", "-q", *options, scene.url(), "two")
    assert done.returncode == 0, done.stderr
    assert WorkingCopy(scene.folder / "two").git("show", "HEAD:file.txt") == "4"


@pytest.mark.one_engine
def test_shallow_clone_can_push(scene: Scene) -> None:
    work = scene.clone("one")
    work.commit("one.txt")
    work.commit("two.txt")
    work.git("push", "-q", "origin", "main")
    shallow = WorkingCopy(scene.folder / "two")
    run_git(scene.folder, "clone", "-q", "--depth=1", scene.url(token=scene.token), "two")
    head = shallow.commit("three.txt")
    shallow.git("push", "-q", "origin", "main")
    assert scene.refs() == {MAIN: head}
    assert scene.clone("three").git("rev-list", "--count", "HEAD") == "4"
    create_repo(scene.client, "other")
    assert "rejected" in shallow.fails("push", scene.url("ada/other", scene.token), "main:half")
    assert list(scene.refs("other")) == [MAIN]


@pytest.mark.one_engine
def test_large_push_and_large_request_work(scene: Scene) -> None:
    """Over a megabyte git tests its credentials first and then sends chunks; it compresses its requests."""
    work = scene.clone("one")
    # Random, so that it does not compress.
    content = b"".join(hashlib.sha512(str(number).encode()).digest() for number in range(60_000))
    work.commit_nothing(120)
    head = work.commit("large.txt", content)
    work.git("push", "-q", "origin", "main")
    other = scene.clone("two")
    assert (other.folder / "large.txt").read_bytes() == content
    other.commit_nothing(300)
    create_commit(scene.client, "ada/tiny", {"new.txt": b"x\n"})
    other.git("-c", "protocol.version=0", "fetch", "-q")
    assert other.head("origin/main~1") == head


@pytest.mark.one_engine
@pytest.mark.limits(keepalive_seconds=0.0001)
def test_long_push_is_kept_alive(scene: Scene) -> None:
    """The hub sends keep-alives while it checks the pack, and git ignores them."""
    work = scene.clone("one")
    for number in range(5):
        head = work.commit(f"{number}.txt")
        work.git("push", "-q", "origin", "main")
    assert scene.refs() == {MAIN: head}
    item = blob(b"by hand\n")
    root = tree(("100644", "hand.txt", item))
    made = commit(root)
    body = commands([(None, made.sha, "refs/heads/hand")]) + pack([item, root, made])
    answer = push(scene.hub.url, scene.token, body)
    assert answer.content.startswith(b"0005\x01")
    assert report_of(answer) == ["unpack ok", "ok refs/heads/hand"]
    refused = push(scene.hub.url, scene.token, commands([(None, made.sha, "refs/heads/x")]) + b"no pack")
    assert report_of(refused)[1] == "ng refs/heads/x unpacker error"


@pytest.mark.one_engine
def test_push_leaves_nothing_in_quarantine(scene: Scene) -> None:
    work = scene.clone("one")
    work.commit()
    work.git("push", "-q", "origin", "main")
    work.fails("push", "origin", "main:refs/strange/x")
    assert scene.in_quarantine == []


@pytest.mark.one_engine
def test_invalid_refs_are_rejected_one_by_one(scene: Scene) -> None:
    work = scene.clone("one")
    for name in ("refs/heads/HEAD", "refs/heads/" + "a" * 40, "refs/heads/" + "x" * 230, "refs/notes/x", "refs/pr/0"):
        assert "remote rejected" in work.fails("push", "origin", f"main:{name}"), name
    assert list(scene.refs()) == [MAIN]
    work.git("push", "-q", "origin", "main:refs/heads/größe", "main:refs/tags/v1.0-β")
    assert scene.clone("two").head("origin/größe") == work.head()
