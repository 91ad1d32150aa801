"""Packs that no git program would send: each is rejected clearly, leaves nothing on disk, and the hub continues."""

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.packs import (
    OFS_DELTA,
    REF_DELTA,
    TREE,
    Object,
    blob,
    commands,
    commit,
    entry,
    pack,
    push,
    report_of,
    tree,
    varint,
)
from tests.git.conftest import Scene

pytestmark = pytest.mark.one_engine

MAIN = "refs/heads/main"
MIB = 1024 * 1024


def sent(scene: Scene, head: str, content: bytes | Iterator[bytes], ref: str = "refs/heads/bad") -> list[str]:
    body = commands([(None, head, ref)])
    answer = push(scene.hub.url, scene.token, body + content if isinstance(content, bytes) else content)
    return report_of(answer)


def assert_untouched(scene: Scene, before: set[Path]) -> None:
    assert files(scene) == before
    assert list(scene.refs()) == [MAIN]
    assert len(scene.events()) == 1
    assert '"level":"error"' not in scene.hub.log
    work = scene.clone("after")
    work.commit()
    work.git("push", "-q", "origin", "main")


def files(scene: Scene) -> set[Path]:
    """Objects on disk, of the repo and in quarantine."""
    return {path for path in (scene.hub.settings.data_dir / "repos").rglob("*") if path.is_file() and is_object(path)}


def is_object(path: Path) -> bool:
    return "objects" in path.parts or "incoming" in path.parts


ITEM = blob(b"harmless\n")
SOUND = tree(("100644", "file.txt", ITEM))
HEAD = commit(SOUND)
GOOD = pack([ITEM, SOUND, HEAD])


def damaged(position: int) -> bytes:
    return GOOD[:position] + bytes([GOOD[position] ^ 1]) + GOOD[position + 1 :]


NOT_A_PACK = {
    "nothing": b"",
    "words": b"this is not a pack at all, only words",
    "a wrong checksum": damaged(len(GOOD) - 1),
    "a damaged object": damaged(30),
    "cut in the middle": GOOD[: len(GOOD) // 2],
    "without its checksum": GOOD[:-20],
    "an unknown version": GOOD[:7] + b"\x09" + GOOD[8:],
    "fewer objects than it says": pack([ITEM, SOUND, HEAD], count=5),
    "four billion objects": pack([ITEM, SOUND, HEAD], count=0xFFFFFFFF),
    "a tree of a terabyte": pack([ITEM], entry(TREE, b"x" * 1000, declared_size=2**40)),
    "a blob of an exabyte": pack([SOUND], entry(3, b"x" * 1000, declared_size=2**60)),
    "an unknown type": pack([ITEM], entry(5, b"x")),
    "a delta without its base": pack(
        [HEAD], entry(REF_DELTA, varint(9) + varint(9) + b"\x90\x09", base_reference=b"\1" * 20)
    ),
    "a delta that reaches before the pack": pack(
        [HEAD], entry(OFS_DELTA, b"\x09\x09\x90\x09", base_reference=b"\xff\xff\x7f")
    ),
    "a delta of itself": pack([HEAD], entry(OFS_DELTA, b"\x09\x09\x90\x09", base_reference=b"\0")),
}


@pytest.mark.parametrize("content", NOT_A_PACK.values(), ids=NOT_A_PACK.keys())
def test_malformed_packs_are_rejected(sqlite_scene: Scene, content: bytes) -> None:
    before = files(sqlite_scene)
    said = sent(sqlite_scene, HEAD.sha, content)
    assert said[0].startswith("unpack ")
    assert said[0] != "unpack ok"
    assert said[1].startswith("ng refs/heads/bad ")
    assert str(sqlite_scene.hub.settings.data_dir) not in "".join(said)
    assert_untouched(sqlite_scene, before)


def delta_bomb() -> bytes:
    """A few kilobytes that expand to a terabyte: each delta copies its base sixteen times."""
    base = b"x" * 0xFFFF
    entries, last, size = [entry(3, base)], hashlib.sha1(b"blob %d\0%s" % (len(base), base)).digest(), len(base)
    for _ in range(6):
        # Copies of the largest piece a command can address, from the start of the base.
        copies = b"\xb0\xff\xff" * min(16, size // 0xFFFF * 16)
        grown = len(copies) // 3 * 0xFFFF
        entries.append(entry(REF_DELTA, varint(size) + varint(grown) + copies, base_reference=last))
        content = base * (grown // len(base)) if grown <= 2**26 else b""
        last = hashlib.sha1(b"blob %d\0%s" % (grown, content)).digest()
        size = grown
    # The last one only claims to be a terabyte.
    entries.append(entry(REF_DELTA, varint(size) + varint(2**40) + b"\xb0\xff\xff", base_reference=last))
    return pack([], *entries)


def test_delta_bomb_is_rejected(sqlite_scene: Scene) -> None:
    before = files(sqlite_scene)
    assert not sent(sqlite_scene, HEAD.sha, delta_bomb())[0].endswith("ok")
    assert_untouched(sqlite_scene, before)


def test_tree_that_inflates_without_end_is_rejected(sqlite_scene: Scene) -> None:
    """Three megabytes on the wire, 600 unpacked; git may allocate 512."""
    whole = entry(TREE, b"", declared_size=600 * MIB)
    before = files(sqlite_scene)
    said = sent(sqlite_scene, HEAD.sha, pack([ITEM], whole[: -len(zlib.compress(b""))] + zeros(600)))
    assert said[0] == "unpack an object of the pack is too large"
    assert_untouched(sqlite_scene, before)


def zeros(mebibytes: int, wbits: int = zlib.MAX_WBITS) -> bytes:
    squeeze = zlib.compressobj(1, zlib.DEFLATED, wbits)
    return b"".join(squeeze.compress(bytes(MIB)) for _ in range(mebibytes)) + squeeze.flush()


FLAWED = {
    ".git": tree(("40000", ".git", SOUND)),
    ".GIT": tree(("40000", ".GIT", SOUND)),
    "git~1": tree(("40000", "git~1", SOUND)),
    ".g\u200cit": tree(("40000", ".g\u200cit", SOUND)),
    "..": tree(("40000", "..", SOUND)),
    ".": tree(("40000", ".", SOUND)),
    "../etc/passwd": tree(("100644", "../etc/passwd", ITEM)),
    "/etc/passwd": tree(("100644", "/etc/passwd", ITEM)),
    "an empty name": tree(("100644", "", ITEM)),
    "twice": tree(("100644", "a", ITEM), ("100644", "a", ITEM)),
    "out of order": tree(("100644", "b", ITEM), ("100644", "a", ITEM)),
    ".gitmodules is a link": tree(("120000", ".gitmodules", ITEM)),
    "no tree at all": Object(TREE, b"100644 a\0short"),
}


@pytest.mark.parametrize("root", FLAWED.values(), ids=FLAWED.keys())
def test_trees_that_would_harm_a_checkout_are_rejected(sqlite_scene: Scene, root: Object) -> None:
    before, head = files(sqlite_scene), commit(root)
    said = sent(sqlite_scene, head.sha, pack([ITEM, SOUND, root, head]))
    assert said[0].startswith("unpack an object of the pack is invalid")
    assert_untouched(sqlite_scene, before)


@pytest.mark.parametrize("path", ["caf\xe9".encode("latin-1"), b"x" * 256, b"a\xff/b".replace(b"/", b"")])
def test_paths_that_only_git_can_express_are_rejected(scene: Scene, path: bytes) -> None:
    root = tree(("100644", path, ITEM))
    before, head = files(scene), commit(root)
    assert sent(scene, head.sha, pack([ITEM, root, head]))[1] == "ng refs/heads/bad refused, see above"
    assert_untouched(scene, before)


def nested(levels: int) -> list[Object]:
    trees = [SOUND]
    for _ in range(levels):
        trees.append(tree(("40000", "d", trees[-1])))
    return trees


def branching(levels: int, width: int) -> list[Object]:
    """Each tree contains the one below many times: few objects, width ** levels files."""
    trees = [SOUND]
    for _ in range(levels):
        trees.append(tree(*(("40000", f"{number:04d}", trees[-1]) for number in range(width))))
    return trees


@pytest.mark.parametrize("trees", [nested(101), nested(20_000), branching(10, 10), branching(2, 1001)])
def test_trees_too_large_to_walk_are_rejected(sqlite_scene: Scene, trees: list[Object]) -> None:
    before, head = files(sqlite_scene), commit(trees[-1])
    # A commit on top, so that none of this is at the tip.
    tip = commit(SOUND, head.sha)
    said = sent(sqlite_scene, tip.sha, pack([ITEM, *trees, head, tip]))
    assert said == ["unpack ok", "ng refs/heads/bad refused, see above"]
    assert_untouched(sqlite_scene, before)


def test_too_deep_tree_in_several_pushes_is_rejected(scene: Scene) -> None:
    """Each part is valid by itself; earlier pushes count."""
    trees = nested(150)
    first, second = commit(trees[90]), commit(trees[-1])
    assert sent(scene, first.sha, pack([ITEM, *trees[:91], first]), "refs/heads/good")[1] == "ok refs/heads/good"
    assert sent(scene, second.sha, pack([*trees[91:], second]))[1] == "ng refs/heads/bad refused, see above"


def test_push_of_a_hundred_thousand_files_is_accepted(scene: Scene) -> None:
    """Large, but valid."""
    rows = b"".join(b"100644 %06d.txt\0" % number + bytes.fromhex(ITEM.sha) for number in range(100_000))
    root = Object(TREE, rows)
    head = commit(root)
    assert sent(scene, head.sha, pack([ITEM, root, head]), "refs/heads/many")[1] == "ok refs/heads/many"
    listed = scene.client.get("/api/models/ada/tiny/tree/many?limit=10").json()
    assert [entry["path"] for entry in listed][:2] == ["000000.txt", "000001.txt"]


def test_pack_with_missing_objects_is_rejected(scene: Scene) -> None:
    before = files(scene)
    missing_blob, missing_parent = commit(tree(("100644", "a", blob(b"absent")))), commit(SOUND, "1" * 40)
    for objects, tip in (
        ([ITEM, SOUND, HEAD], "2" * 40),
        ([HEAD], HEAD.sha),
        ([tree(("100644", "a", blob(b"absent"))), missing_blob], missing_blob.sha),
        ([ITEM, SOUND, missing_parent], missing_parent.sha),
        ([ITEM, SOUND], SOUND.sha),
        ([ITEM], ITEM.sha),
    ):
        assert sent(scene, tip, pack(objects))[1].startswith("ng refs/heads/bad "), tip
    assert_untouched(scene, before)


def test_gzip_bomb_is_rejected(sqlite_scene: Scene) -> None:
    """A few megabytes of gzip that expand to a gigabyte, to either service."""
    bomb = zeros(1024, 31)
    before = files(sqlite_scene)
    answer = push(sqlite_scene.hub.url, sqlite_scene.token, bomb, **{"content-encoding": "gzip"})
    assert (answer.status_code, answer.text) == (400, "The request is not in packet lines.\n")
    whole = gzip.compress(commands([(None, HEAD.sha, "refs/heads/bad")]))
    # git never sends a second gzip member; it is not read.
    assert not report_of(push(sqlite_scene.hub.url, sqlite_scene.token, whole + bomb, **{"content-encoding": "gzip"}))[
        0
    ].endswith("ok")
    headers = {"content-type": "application/x-git-upload-pack-request", "content-encoding": "gzip"}
    fetched = sqlite_scene.client.post("/ada/tiny/git-upload-pack", content=bomb, headers=headers)
    assert fetched.status_code in (400, 413)
    assert_untouched(sqlite_scene, before)
