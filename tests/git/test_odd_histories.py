"""Odd but valid histories are accepted, and every page and route can show them."""

import pytest
from tests.bed.packs import COMMIT, Object, blob, commands, pack, push, report_of, tree
from tests.git.conftest import Scene

pytestmark = pytest.mark.one_engine

ITEM = blob(b"text\n")
ROOT = tree(("100644", "a.txt", ITEM))


def odd(author: bytes, message: bytes, more: bytes = b"") -> Object:
    head = f"tree {ROOT.sha}\n".encode()
    return Object(COMMIT, head + b"author %s\ncommitter %s\n%s\n%s" % (author, author, more, message))


ADA = b"Ada <ada@example.org> 1700000000 +0000"
ODD = {
    "the year three million": odd(b"Ada <ada@example.org> 99999999999999 +0000", b"m\n"),
    "an old time zone": odd(b"Ada <ada@example.org> 1700000000 +051800", b"m\n"),
    "latin without saying so": odd("Adè <a@x> 1700000000 +0000".encode("latin-1"), "é\n".encode("latin-1")),
    "latin": odd("Adè <a@x> 1700000000 +0000".encode("latin-1"), "é\n".encode("latin-1"), b"encoding latin-1\n"),
    "no such encoding": odd(ADA, "é\n".encode("latin-1"), b"encoding bogus\n"),
    "no encoding of text": odd(ADA, b"m\n", b"encoding hex\n"),
    "half a character": odd(ADA, b"\\ud800\n", b"encoding unicode_escape\n"),
    "no message": odd(ADA, b""),
    "nobody": odd(b" <> 0 +0000", b"m"),
    "control characters": odd(b"A\x01da <a@x> 1700000000 +0000", b"\x02m\x7f\n"),
}


@pytest.mark.parametrize("commit", ODD.values(), ids=ODD.keys())
def test_odd_history_is_accepted_and_shown(scene: Scene, commit: Object) -> None:
    body = commands([(None, commit.sha, "refs/heads/odd")]) + pack([ITEM, ROOT, commit])
    assert report_of(push(scene.hub.url, scene.token, body)) == ["unpack ok", "ok refs/heads/odd"]
    listed = scene.client.get("/api/models/ada/tiny/commits/odd")
    assert (listed.status_code, listed.json()[0]["id"]) == (200, commit.sha)
    for path in ("tree/odd?expand=true", "revision/odd", f"revision/{commit.sha}", "refs"):
        assert scene.client.get(f"/api/models/ada/tiny/{path}").status_code == 200, path
    for page in ("tree/odd", "blob/odd/a.txt", "commits/odd", f"commit/{commit.sha}"):
        assert scene.client.get(f"/ada/tiny/{page}").status_code == 200, page
    assert scene.clone("one").head("origin/odd") == commit.sha
