"""Malformed or oversized push and fetch requests."""

import gzip

import pytest
from tests.bed import lean_http
from tests.bed.packs import ZERO, bands, commands, pack, pkt_line, push, report_of
from tests.bed.running_hub import RunningHub
from tests.git.conftest import Scene
from tests.protocol.raw import raw_request, status_of

pytestmark = pytest.mark.one_engine

SHA = "1" * 40

MALFORMED = {
    "not hex": b"zzzz",
    "too short": b"0003",
    "one": b"0001",
    "too long": b"ffff" + b"x" * 70_000,
    "cut": b"00a0abc",
    "negative": b"-001",
    "no command": pkt_line(b"hello") + b"0000",
    "no ids": pkt_line(b"x y refs/heads/main") + b"0000",
    "short ids": pkt_line(b"123 456 refs/heads/main") + b"0000",
    "a NUL and nothing": pkt_line(b"\0") + b"0000",
    "nothing changes": commands([(SHA, SHA, "refs/heads/x")]),
    "another hash": commands([(None, SHA, "refs/heads/x")], "report-status object-format=sha256"),
    "push options": commands([(None, SHA, "refs/heads/x")], "report-status push-options"),
    "a certificate": pkt_line(b"push-cert\0 report-status") + b"0000",
    "no flush": pkt_line(f"{ZERO} {SHA} refs/heads/x".encode()),
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_pushes_are_rejected(sqlite_scene: Scene, body: bytes) -> None:
    answer = push(sqlite_scene.hub.url, sqlite_scene.token, body)
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    assert len(sqlite_scene.events()) == 1


@pytest.mark.parametrize("body", [b"", b"zzzz", b"0000", b"0003", b"ffff", b"00a0abc", pkt_line(b"want x\n") + b"0000"])
@pytest.mark.parametrize("version", ["", "version=2", "version=9", "x" * 500, "version=2:$(id)"])
def test_malformed_fetches_are_rejected(sqlite_scene: Scene, body: bytes, version: str) -> None:
    headers = {"content-type": "application/x-git-upload-pack-request", "git-protocol": version}
    answer = lean_http.post(f"{sqlite_scene.hub.url}/ada/tiny/git-upload-pack", content=body, headers=headers)
    assert answer.status_code in (200, 400), answer.text
    assert str(sqlite_scene.hub.settings.data_dir) not in answer.text
    assert '"level":"error"' not in sqlite_scene.hub.log


def test_bodies_that_differ_from_their_headers_are_rejected(sqlite_scene: Scene) -> None:
    body = commands([(None, SHA, "refs/heads/x")])
    for coded, headers in (
        (body, {"content-encoding": "gzip"}),
        (gzip.compress(body)[:-10], {"content-encoding": "gzip"}),
        (body, {"content-encoding": "br"}),
        (body, {"content-type": "text/plain"}),
    ):
        assert push(sqlite_scene.hub.url, sqlite_scene.token, coded, **headers).status_code in (400, 415)


def test_push_of_a_hundred_thousand_refs_is_rejected(scene: Scene) -> None:
    body = commands([(None, SHA, f"refs/heads/b{number}") for number in range(100_000)]) + pack([])
    answer = push(scene.hub.url, scene.token, body)
    assert answer.status_code == 200
    assert bands(answer.content)[3] == b"A push may change at most 1,000 refs. Push them in parts.\n"
    assert len(scene.refs()) == 1


def test_push_of_a_thousand_refs_is_accepted(scene: Scene) -> None:
    work = scene.clone("one")
    names = [f"main:refs/tags/t{number}" for number in range(1000)]
    work.git("push", "-q", "origin", *names)
    assert len(scene.refs()) == 1001
    assert len(scene.events()[-1]["updatedRefs"]) == 1000
    assert "at most 1,000 refs" in work.fails("push", "origin", *(f"{name}x" for name in names), "main:dev")


def test_invalid_ref_names_are_rejected(scene: Scene) -> None:
    head = scene.refs()["refs/heads/main"]
    names = [
        "refs/heads/../../config",
        "../../../etc/passwd",
        "refs/heads/a..b",
        "refs/heads/.hidden",
        "refs/heads/a/.b",
        "refs/heads/a.lock",
        "refs/heads/a//b",
        "refs/heads/a b",
        "refs/heads/a\tb",
        "refs/heads/a~1",
        "refs/heads/a^",
        "refs/heads/a:b",
        "refs/heads/a?",
        "refs/heads/[a",
        "refs/heads/a*",
        "refs/heads/a\\b",
        "refs/heads/a@{b",
        "refs/heads/a.",
        "refs/heads/a/",
        "refs/heads/",
        "refs/heads",
        "refs/heads/-x",
        "main",
        "HEAD",
        "refs/heads/x\x7f",
        "refs/remotes/origin/main",
        "refs/stash",
    ]
    said = report_of(push(scene.hub.url, scene.token, commands([(None, head, name) for name in names]) + pack([])))
    assert [entry.split(" ")[0] for entry in said[1:]] == ["ng"] * len(names)
    twice = commands([(None, head, "refs/heads/x"), (None, head, "refs/heads/x")]) + pack([])
    assert report_of(push(scene.hub.url, scene.token, twice))[1:] == ["ng refs/heads/x named more than once"] * 2
    assert list(scene.refs()) == ["refs/heads/main"]


def test_ref_name_that_is_not_utf_8_is_rejected(scene: Scene) -> None:
    head = scene.refs()["refs/heads/main"]
    body = pkt_line(f"{ZERO} {head} refs/heads/".encode() + b"caf\xe9\0report-status") + b"0000" + pack([])
    answer = push(scene.hub.url, scene.token, body)
    assert b"ng refs/heads/caf\xe9 the name is not UTF-8" in answer.content


def test_push_without_side_bands_and_without_a_report_works(scene: Scene) -> None:
    head = scene.refs()["refs/heads/main"]
    plain = push(scene.hub.url, scene.token, commands([(None, head, "refs/heads/a")], "report-status") + pack([]))
    assert plain.content == pkt_line(b"unpack ok\n") + pkt_line(b"ok refs/heads/a\n") + b"0000"
    silent = push(scene.hub.url, scene.token, commands([(None, head, "refs/heads/b")], "agent=x") + pack([]))
    assert silent.content == b""
    squeezed = gzip.compress(commands([(None, head, "refs/heads/c")]) + pack([]))
    assert report_of(push(scene.hub.url, scene.token, squeezed, **{"content-encoding": "gzip"}))[1] == "ok refs/heads/c"
    assert set(scene.refs()) == {"refs/heads/main", "refs/heads/a", "refs/heads/b", "refs/heads/c"}


def test_push_announced_as_too_large_is_rejected(hub: RunningHub, scene: Scene) -> None:
    head = (
        f"POST /ada/tiny/git-receive-pack HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer {scene.token}\r\n"
        f"Content-Type: application/x-git-receive-pack-request\r\nContent-Length: {9 * 1024**3}\r\n\r\n"
    )
    assert status_of(raw_request(hub.address, head.encode())) == 413


def test_gits_test_of_its_credentials_is_answered(scene: Scene) -> None:
    tried = push(scene.hub.url, scene.token, b"0000")
    assert (tried.status_code, tried.content) == (200, b"")
    assert tried.headers["content-type"] == "application/x-git-receive-pack-result"
