"""Downloads and uploads with a hub that sends wrong or hostile responses."""

import hashlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.bed.hostile import (
    CLIENT_TYPES,
    TOKEN,
    HostileServer,
    ScriptedResponse,
    SeenRequest,
    call_with,
    http_response,
    json_response,
    run_hostile_server,
)

from hubgate.client import errors

CONTENT = b"0123456789" * 5_000
NAME = hashlib.sha256(CONTENT).hexdigest()
HEAD = http_response(200, content_length=str(len(CONTENT)), etag=f'"{NAME}"', x_repo_commit="c" * 40)

faces = pytest.mark.parametrize("face", CLIENT_TYPES)


def fetch(face: Any, server: HostileServer, folder: Path, retries: int = 0) -> Any:
    def ask(hub: Any) -> Any:
        return hub.download("ada/x", "m.bin", folder / "m.bin")

    return call_with(face, server.url, ask, folder / "config", retries=retries)


def nothing_in(folder: Path) -> bool:
    return not (folder / "m.bin").exists()


@faces
def test_download_with_wrong_hash_is_deleted(face: Any, tmp_path: Path) -> None:
    with run_hostile_server(HEAD, http_response(200, CONTENT[:-1] + b"x")) as server, pytest.raises(errors.WrongHash):
        fetch(face, server, tmp_path)
    assert nothing_in(tmp_path)
    assert list(tmp_path.glob(".*part")) == []


@faces
def test_download_longer_than_announced_is_stopped(face: Any, tmp_path: Path) -> None:
    def endless(visitor: socket.socket, _: SeenRequest) -> None:
        visitor.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            visitor.sendall(b"x" * 65_536)

    with (
        run_hostile_server(HEAD, endless) as server,
        pytest.raises(errors.UnexpectedResponse, match="more bytes than the file has"),
    ):
        fetch(face, server, tmp_path)
    assert nothing_in(tmp_path)


def in_pieces(*lengths: int) -> Callable[[socket.socket, SeenRequest], None]:
    """Answers ranges as asked, and breaks off after so many bytes."""
    left = list(lengths)

    def write(visitor: socket.socket, seen: SeenRequest) -> None:
        start = int(seen.headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        rest = CONTENT[start:]
        status = "206 Partial" if "range" in seen.headers else "200 OK"
        span = f"Content-Range: bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}\r\n" if start else ""
        visitor.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(rest)}\r\n{span}\r\n".encode())
        visitor.sendall(rest[: left.pop(0)])

    return write


@faces
def test_download_resumes_after_lost_connections(face: Any, tmp_path: Path) -> None:
    broken = in_pieces(10_000, 10_000, 0, 100_000)
    with run_hostile_server(HEAD, broken) as server:
        fetch(face, server, tmp_path, retries=2)
        asked = [seen.headers.get("range") for seen in server.seen[1:]]
    assert asked == [None, "bytes=10000-", "bytes=20000-", "bytes=20000-"]
    assert (tmp_path / "m.bin").read_bytes() == CONTENT
    # All files of one commit, even if the branch moves.
    assert {seen.target for seen in server.seen[1:]} == {f"/ada/x/resolve/{'c' * 40}/m.bin"}


def test_partial_download_is_stored_for_the_next_run(tmp_path: Path) -> None:
    with run_hostile_server(HEAD, in_pieces(10_000, 0)) as server, pytest.raises(errors.ConnectionLost):
        fetch(CLIENT_TYPES[0], server, tmp_path)
    assert nothing_in(tmp_path)
    with run_hostile_server(HEAD, in_pieces(100_000)) as server:
        fetch(CLIENT_TYPES[0], server, tmp_path)
        assert server.seen[1].headers["range"] == "bytes=10000-"
    assert (tmp_path / "m.bin").read_bytes() == CONTENT


def test_download_restarts_if_the_hub_ignores_ranges(tmp_path: Path) -> None:
    with run_hostile_server(HEAD, in_pieces(10_000), http_response(200, CONTENT)) as server:
        fetch(CLIENT_TYPES[0], server, tmp_path, retries=1)
    assert (tmp_path / "m.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("span", ["bytes 5-9/50000", "bytes 10000-49999/60000", "nonsense", ""])
def test_wrong_range_is_rejected(span: str, tmp_path: Path) -> None:
    wrong = http_response(206, CONTENT[10_000:], content_range=span)
    with (
        run_hostile_server(HEAD, in_pieces(10_000), wrong) as server,
        pytest.raises(errors.UnexpectedResponse, match="a different part of the file"),
    ):
        fetch(CLIENT_TYPES[0], server, tmp_path, retries=1)
    assert nothing_in(tmp_path)


def test_busy_hub_is_retried(tmp_path: Path) -> None:
    with run_hostile_server(HEAD, http_response(503, retry_after="0"), http_response(200, CONTENT)) as server:
        fetch(CLIENT_TYPES[0], server, tmp_path, retries=1)
    assert (tmp_path / "m.bin").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "head",
    [
        http_response(200, content_length="5", etag='"abc"'),
        http_response(200, content_length="5"),
        http_response(302, location="http://127.0.0.2:1/file"),
    ],
)
def test_file_without_a_hash_is_not_downloaded(head: bytes, tmp_path: Path) -> None:
    with run_hostile_server(head) as server:
        with pytest.raises(errors.HubgateError):
            fetch(CLIENT_TYPES[0], server, tmp_path)
        assert len(server.seen) == 1


@faces
def test_file_on_another_host_is_downloaded_without_the_token_and_verified(face: Any, tmp_path: Path) -> None:
    with run_hostile_server(http_response(200, CONTENT), http_response(200, b"x" * len(CONTENT))) as other:
        linked = {"x_linked_etag": f'"{NAME}"', "x_linked_size": str(len(CONTENT)), "x_repo_commit": "c" * 40}
        away = http_response(302, location=f"{other.url}/store?signature=s", **linked)
        with run_hostile_server(away) as server:
            fetch(face, server, tmp_path)
            assert (tmp_path / "m.bin").read_bytes() == CONTENT
            assert all(seen.headers["authorization"] == f"Bearer {TOKEN}" for seen in server.seen)
            assert [seen.target for seen in other.seen] == ["/store?signature=s"]
            assert "authorization" not in other.seen[0].headers
            assert TOKEN not in str(other.seen)
            (tmp_path / "m.bin").unlink()
            with pytest.raises(errors.WrongHash):
                fetch(face, server, tmp_path)


def test_redirect_back_to_the_hub_is_followed_without_the_token(tmp_path: Path) -> None:
    with run_hostile_server(b"") as other:
        linked = {"x_linked_etag": f'"{NAME}"', "x_linked_size": str(len(CONTENT))}
        away = http_response(302, location=f"{other.url}/", **linked)
        with run_hostile_server(away, away, http_response(200, CONTENT)) as server:
            other._answers[0] = http_response(302, location=f"{server.url}/api/settings/secret")
            fetch(CLIENT_TYPES[0], server, tmp_path)
            assert server.seen[2].target == "/api/settings/secret"
            assert "authorization" not in server.seen[2].headers


@pytest.mark.parametrize("path", ["../up", "/etc/x", "a/../../up", "a//b", "nul\0"])
def test_repo_with_unsafe_file_names_writes_nothing(path: str, tmp_path: Path) -> None:
    entries = [{"type": "file", "path": name, "oid": "0" * 40, "size": 1} for name in ("good", path)]
    about = json_response(200, {"id": "ada/x", "sha": "c" * 40})
    with run_hostile_server(about, json_response(200, entries), HEAD) as server:
        with pytest.raises(errors.UnexpectedResponse, match="cannot be used here"):
            call_with(
                CLIENT_TYPES[0],
                server.url,
                lambda hub: hub.download_all("ada/x", tmp_path / "copy"),
                tmp_path / "config",
            )
        assert len(server.seen) == 2
    assert not (tmp_path / "copy").exists()


def upload(face: Any, server: HostileServer, folder: Path, **more: Any) -> Any:
    return call_with(face, server.url, lambda hub: hub.upload("ada/x", {"m.bin": CONTENT}), folder, **more)


LARGE = json_response(200, {"files": [{"path": "m.bin", "uploadMode": "lfs", "shouldIgnore": False}]})
COMMITTED = json_response(200, {"commitOid": "d" * 40, "commitUrl": "http://x/commit/d", "success": True})


def batch(**action: Any) -> bytes:
    return json_response(200, {"objects": [{"oid": NAME, "size": len(CONTENT), "actions": action}]})


@faces
def test_large_file_is_sent_to_another_host_without_the_token(face: Any, tmp_path: Path) -> None:
    with run_hostile_server(http_response(200, etag='"e"')) as other:
        where = {"upload": {"href": f"{other.url}/put", "header": {"X-Given": "1"}}}
        where["verify"] = {"href": f"{other.url}/verify"}
        with run_hostile_server(LARGE, batch(**where), COMMITTED) as server:
            assert upload(face, server, tmp_path).sent == ["m.bin"]
        assert [(seen.method, seen.target) for seen in other.seen] == [("PUT", "/put"), ("POST", "/verify")]
        assert other.seen[0].body == CONTENT
        assert other.seen[0].headers["x-given"] == "1"
        assert all("authorization" not in seen.headers for seen in other.seen)
        assert server.seen[-1].body.count(b"\n") == 2


def test_parts_are_sent_to_another_host_without_the_token(tmp_path: Path) -> None:
    with run_hostile_server(http_response(200, etag='"e"')) as other:
        header = {"chunk_size": "30000", "00001": f"{other.url}/1", "00002": f"{other.url}/2"}
        with run_hostile_server(
            LARGE, batch(upload={"href": f"{other.url}/all", "header": header}), COMMITTED
        ) as server:
            upload(CLIENT_TYPES[0], server, tmp_path)
        assert [seen.target for seen in other.seen] == ["/1", "/2", "/all"]
        assert other.seen[0].body + other.seen[1].body == CONTENT
        assert all("authorization" not in seen.headers for seen in other.seen)


@pytest.mark.parametrize(
    "action",
    [
        {"upload": {"href": "file:///etc/passwd"}},
        {"upload": {"href": 7}},
        {"upload": {}},
        {"upload": {"href": "http://127.0.0.1:1/", "header": {"chunk_size": "0"}}},
        {"upload": {"href": "http://127.0.0.1:1/", "header": {"chunk_size": "99999"}}},
    ],
)
def test_missing_upload_address_is_an_unexpected_answer(action: Any, tmp_path: Path) -> None:
    with run_hostile_server(LARGE, batch(**action), COMMITTED) as server:
        with pytest.raises(errors.UnexpectedResponse):
            upload(CLIENT_TYPES[0], server, tmp_path)
        assert len(server.seen) == 2


@pytest.mark.parametrize(
    "first",
    [
        json_response(200, {}),
        json_response(200, {"files": []}),
        json_response(200, {"files": 3}),
        json_response(200, {"files": [{"path": 3}]}),
    ],
)
def test_missing_upload_mode_is_an_unexpected_answer(first: ScriptedResponse, tmp_path: Path) -> None:
    with run_hostile_server(first) as server, pytest.raises(errors.UnexpectedResponse):
        upload(CLIENT_TYPES[0], server, tmp_path)


def test_upload_does_not_follow_redirects(tmp_path: Path) -> None:
    with (
        run_hostile_server(http_response(200)) as other,
        run_hostile_server(http_response(307, location=other.url)) as store,
    ):
        to_store = batch(upload={"href": store.url})
        with run_hostile_server(LARGE, to_store, COMMITTED) as server, pytest.raises(errors.UnsafeRedirect):
            upload(CLIENT_TYPES[0], server, tmp_path)
        assert other.seen == []
