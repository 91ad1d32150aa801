"""Pages of content that only git can create: symlinks, submodules, merges, odd names, very large commits."""

import pytest
from tests.bed.packs import COMMIT, Object, blob, commands, pack, push, report_of, tree
from tests.git.conftest import Scene

pytestmark = pytest.mark.one_engine


def made(root: Object, *parents: Object, message: str = "m") -> Object:
    lines = [f"tree {root.sha}", *(f"parent {parent.sha}" for parent in parents)]
    who = "Ada <ada@example.org> 1700000000 +0000"
    return Object(COMMIT, "\n".join([*lines, f"author {who}", f"committer {who}", "", message]).encode())


def pushed(scene: Scene, head: Object, *others: Object) -> None:
    body = commands([(None, head.sha, "refs/heads/odd")]) + pack([head, *others])
    assert report_of(push(scene.hub.url, scene.token, body)) == ["unpack ok", "ok refs/heads/odd"]


def test_symlinks_and_submodules_are_shown(scene: Scene) -> None:
    text, link = blob(b"text\n"), blob(b"a.txt")
    module = Object(COMMIT, b"not here")
    root = tree(("100644", "a.txt", text), ("120000", "link", link), ("160000", "module", module))
    head = made(root)
    pushed(scene, head, root, text, link)
    listed = scene.client.get("/ada/tiny/tree/odd").text
    assert "/blob/odd/link" in listed
    assert "module" not in listed.partition("<main")[2], "it has no content here"
    assert '<span id="L1">a.txt\n</span>' in scene.client.get("/ada/tiny/blob/odd/link").text
    assert scene.client.get("/ada/tiny/blob/odd/module").status_code == 404
    assert "A submodule." in scene.client.get(f"/ada/tiny/commit/{head.sha}").text


def test_merge_is_shown_against_its_first_parent(scene: Scene) -> None:
    one, two = blob(b"one\n"), blob(b"two\n")
    first, left = tree(("100644", "a.txt", one)), tree(("100644", "a.txt", two))
    right = tree(("100644", "a.txt", one), ("100644", "b.txt", one))
    both = tree(("100644", "a.txt", two), ("100644", "b.txt", one))
    start = made(first)
    ours, theirs = made(left, start, message="ours"), made(right, start, message="theirs")
    merge = made(both, ours, theirs, message="merged")
    pushed(scene, merge, ours, theirs, start, first, left, right, both, one, two)
    page = scene.client.get(f"/ada/tiny/commit/{merge.sha}").text
    assert "1 file changed since the first parent" in page
    assert "/blob/" + merge.sha + "/b.txt" in page
    history = scene.client.get("/ada/tiny/commits/odd").text
    assert history.index("merged") < min(history.index("ours"), history.index("theirs"))
    files = scene.client.get("/ada/tiny/tree/odd").text
    assert f"/commit/{ours.sha}" in files
    assert f"/commit/{theirs.sha}" in files


def test_commit_with_many_files_and_lines_is_shortened(scene: Scene) -> None:
    lines = blob(b"line\n" * 700)
    root = tree(*(("100644", f"{number:03}.txt", lines) for number in range(150)))
    head = made(root)
    pushed(scene, head, root, lines)
    page = scene.client.get(f"/ada/tiny/commit/{head.sha}").text
    assert "150 files changed" in page
    assert page.count("<ins>") == 1000
    assert "The rest is not shown." in page
    assert "50 more files not shown." in page
