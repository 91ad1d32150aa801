"""A store that is away, slow, full, or answers with errors and half bodies: one clear error, in bounded time, and
nothing that is wrong.
"""

import asyncio
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import pytest
from tests.objects.misbehaving import StoreRequest, error, part_of, response, run_far_end
from tests.objects.stores import PART, key_of, keys_in, put, read, sha256, written_file

from hubgate.server.clock import SECOND
from hubgate.server.errors import HubError
from hubgate.server.objects.model import Objects, StoreFull, StoreUnavailable

CONTENT = random.Random(2).randbytes(100_000)
KEY = key_of(CONTENT)
# Requests are repeated at once.
QUICK: dict[str, Any] = {"retry_seconds": 60.0, "first_pause": 0.01}
ONCE: dict[str, Any] = {"retry_seconds": 0.0}
# Silence is noticed soon.
IMPATIENT: dict[str, Any] = {**ONCE, "silence_seconds": 0.5}


async def read_until_error(objects: Objects, start: int, end: int) -> bytes:
    received = bytearray()

    async def receive() -> None:
        async for chunk in objects.get(KEY, start, end):
            received.extend(chunk)

    with pytest.raises(StoreUnavailable):
        await receive()
    return bytes(received)


async def test_store_that_is_away_is_named(tmp_path: Path) -> None:
    with run_far_end(lambda _: None) as far_end:
        place = far_end.place(tmp_path)
    async with place.opened(**ONCE) as objects:
        for work in (objects.size(KEY), put(objects, CONTENT), read(objects, KEY, 0, 9), keys_in(objects)):
            with pytest.raises(StoreUnavailable) as raised:
                await work
            assert "ConnectError" in str(raised.value.__cause__)
            assert (raised.value.status, raised.value.retry_after) == (503, 5)


async def test_silent_store_is_given_up(tmp_path: Path) -> None:
    with run_far_end(lambda _: None) as far_end:
        async with far_end.place(tmp_path).opened(**IMPATIENT) as objects:
            with pytest.raises(StoreUnavailable) as raised:
                await objects.size(KEY)
            assert "ReadTimeout" in str(raised.value.__cause__)
            with pytest.raises(StoreUnavailable):
                await read(objects, KEY, 0, 9)
        assert len(far_end.requests) == 2


async def test_store_that_answers_byte_by_byte_is_given_up(tmp_path: Path) -> None:
    def answer(request: StoreRequest) -> bytes | Iterator[bytes]:
        return response(404) if request.method == "HEAD" else slowly()

    def slowly() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"
        for _ in range(1000):
            time.sleep(0.1)
            yield b" "

    with run_far_end(answer) as far_end:
        async with far_end.place(tmp_path).opened(**IMPATIENT) as objects:
            for work in (put(objects, CONTENT), keys_in(objects)):
                started = time.monotonic()
                with pytest.raises(StoreUnavailable):
                    await work
                assert time.monotonic() - started < 50


async def test_busy_store_is_asked_again(tmp_path: Path) -> None:
    def answer(request: StoreRequest) -> bytes:
        if far_end.count(request.method) < 3:
            return error(503, "SlowDown")
        return part_of(CONTENT, request) if request.method == "GET" else response(200)

    with run_far_end(answer) as far_end:
        async with far_end.place(tmp_path).opened(**QUICK) as objects:
            await objects.delete(KEY)
            assert await read(objects, KEY, 10, 20) == CONTENT[10:20]
        assert (far_end.count("DELETE"), far_end.count("GET")) == (3, 3)


async def test_store_that_stays_busy_is_not_asked_forever(tmp_path: Path) -> None:
    with run_far_end(lambda _: error(503, "SlowDown")) as far_end:
        async with far_end.place(tmp_path).opened(**QUICK) as objects:
            with pytest.raises(StoreUnavailable) as raised:
                await keys_in(objects)
            assert "503 SlowDown" in str(raised.value.__cause__)
        assert 2 <= len(far_end.requests) <= 5


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (error(507, "InsufficientStorage"), StoreFull),
        (error(403, "QuotaExceeded"), StoreFull),
        (error(403, "AccessDenied"), StoreUnavailable),
        (error(404, "NoSuchBucket"), StoreUnavailable),
        (error(301, "PermanentRedirect"), StoreUnavailable),
        (response(200, b"<html>sign in to the network</html>"), StoreUnavailable),
        (response(200, b"not XML"), StoreUnavailable),
        (response(200, b'<!DOCTYPE a [<!ENTITY b "bbbb">]><ListBucketResult>&b;</ListBucketResult>'), StoreUnavailable),
        (response(200, b"x" * (9 * 1024 * 1024)), StoreUnavailable),
        (response(200, b"<?xml version='1.0' encoding='Shift_JIS'?><a>busy</a>"), StoreUnavailable),
        (response(502, b"<?xml version='1.0' encoding='unknown'?><a>busy</a>"), StoreUnavailable),
        (response(200, b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"), StoreUnavailable),
        (
            response(
                200,
                b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken>"
                b"</ListBucketResult>",
            ),
            StoreUnavailable,
        ),
        (
            response(200, b"<ListBucketResult><Contents><Key>a</Key><Size>many</Size></Contents></ListBucketResult>"),
            StoreUnavailable,
        ),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n<ListBu", StoreUnavailable),
        (b"\x00\x01\x02 not HTTP\r\n\r\n", StoreUnavailable),
    ],
    ids=[
        *("full", "over quota", "forbidden", "no bucket", "another region", "page", "text", "document type", "endless"),
        *("encoding", "unknown encoding", "first page only", "same page", "size"),
        *("half", "another protocol"),
    ],
)
async def test_other_answers_are_errors(tmp_path: Path, answer: bytes, expected: type[HubError]) -> None:
    with run_far_end(lambda _: answer) as far_end:
        async with far_end.place(tmp_path).opened(**ONCE) as objects:
            with pytest.raises(expected):
                async with asyncio.timeout(60):
                    await keys_in(objects)


async def test_download_that_breaks_off_continues(tmp_path: Path) -> None:
    with run_far_end(lambda request: part_of(CONTENT, request, sent=40_000)) as far_end:
        async with far_end.place(tmp_path).opened(**QUICK) as objects:
            assert await read(objects, KEY, 1, 100_000) == CONTENT[1:]
        assert [request.headers["range"] for request in far_end.requests] == [
            "bytes=1-99999",
            "bytes=40001-99999",
            "bytes=80001-99999",
        ]


async def test_download_that_never_continues_is_an_error(tmp_path: Path) -> None:
    def answer(request: StoreRequest) -> bytes:
        return part_of(CONTENT, request, sent=500 if len(far_end.requests) == 1 else 0)

    with run_far_end(answer) as far_end:
        async with far_end.place(tmp_path).opened(**QUICK) as objects:
            assert await read_until_error(objects, 0, 1000) == CONTENT[:500]
        assert len(far_end.requests) <= 6


@pytest.mark.parametrize(
    "answer",
    [
        response(200, CONTENT),
        response(206, CONTENT[:10], content_range="bytes 0-9/100000"),
        response(206, CONTENT[:20], content_range="bytes 10-19/100000"),
        response(416),
    ],
    ids=["everything", "another range", "too much", "no range"],
)
async def test_other_bytes_than_requested_are_never_returned(tmp_path: Path, answer: bytes) -> None:
    with run_far_end(lambda _: answer) as far_end:
        async with far_end.place(tmp_path).opened(**ONCE) as objects:
            assert await read_until_error(objects, 10, 20) == b""


STARTED = b"<InitiateMultipartUploadResult><UploadId>upload-1</UploadId></InitiateMultipartUploadResult>"


@pytest.mark.parametrize("failing", ["part", "join", "late"])
async def test_upload_in_parts_that_fails_is_aborted(tmp_path: Path, failing: str) -> None:
    def answer(request: StoreRequest) -> bytes:
        match request.method, "uploads=" in request.target:
            case "HEAD", _:
                return response(404)
            case "POST", True:
                return response(200, STARTED)
            case "PUT", _:
                is_bad = failing == "part" and "partNumber=2" in request.target
                return error(400, "InvalidPart") if is_bad else response(200, etag='"e"')
            case "POST", False if failing == "late":
                return response(200, b"<Error><Code>InternalError</Code></Error>")
            case "POST", False:
                return error(400, "InvalidPart")
        return response(204)

    content = random.Random(3).randbytes(2 * PART + 1)
    with run_far_end(answer) as far_end:
        async with far_end.place(tmp_path).opened(**ONCE) as objects:
            path = written_file(tmp_path, content)
            with pytest.raises(StoreUnavailable):
                await objects.put(key_of(content), path, sha256(content))
        aborted = [request.target for request in far_end.requests if request.method == "DELETE"]
        assert len(aborted) == 1
        assert "uploadId=upload-1" in aborted[0]


@pytest.mark.parametrize("stored", [None, 17], ids=["nothing", "an older, damaged object"])
@pytest.mark.parametrize(
    "joined",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n      ",
        response(200, b"<html>sign in to the network</html>"),
        error(404, "NoSuchUpload"),
    ],
    ids=["half", "page", "lost"],
)
async def test_parts_that_were_not_joined_are_not_stored(tmp_path: Path, joined: bytes, stored: int | None) -> None:
    """The status 200 is sent before the parts are joined."""

    def answer(request: StoreRequest) -> bytes:
        match request.method, "uploads=" in request.target:
            case "HEAD", _:
                return response(404) if stored is None else response(200, content_length=str(stored))
            case "POST", True:
                return response(200, STARTED)
            case "POST", False:
                return joined
        return response(200, etag='"e"')

    content = random.Random(4).randbytes(PART + 1)
    with run_far_end(answer) as far_end:
        async with far_end.place(tmp_path).opened(**ONCE) as objects:
            with pytest.raises(StoreUnavailable):
                await objects.put(key_of(content), written_file(tmp_path, content), sha256(content))


async def test_lost_answer_to_the_last_request_is_not_an_error(tmp_path: Path) -> None:
    """The store has joined the parts, the answer is lost, and the repeated request finds no upload."""

    def answer(request: StoreRequest) -> bytes:
        match request.method, "uploads=" in request.target:
            case "HEAD", _:
                return response(200, content_length=str(PART + 1)) if far_end.count("HEAD") > 1 else response(404)
            case "POST", True:
                return response(200, STARTED)
            case "PUT", _:
                return response(200, etag='"e"')
        return b"" if far_end.count("POST") == 2 else error(404, "NoSuchUpload")

    content = random.Random(4).randbytes(PART + 1)
    with run_far_end(answer) as far_end:
        async with far_end.place(tmp_path).opened(**QUICK) as objects:
            assert await objects.put(key_of(content), written_file(tmp_path, content), sha256(content)) is True


async def test_upload_survives_the_deletion_of_its_temporary_file(tmp_path: Path) -> None:
    """Housekeeping deletes files of uploads that are a day old, and a large file may take longer to send."""
    parts: dict[str, bytes] = {}

    def answer(request: StoreRequest) -> bytes:
        match request.method, "uploads=" in request.target:
            case "HEAD", _:
                return response(200, content_length=str(len(content))) if parts else response(404)
            case "POST", True:
                path.unlink()
                return response(200, STARTED)
            case "PUT", _:
                parts[request.target.partition("partNumber=")[2][0]] = request.body
        return response(200, etag='"e"')

    content = random.Random(5).randbytes(2 * PART + 1)
    path = written_file(tmp_path, content)
    with run_far_end(answer) as far_end:
        async with far_end.place(tmp_path).opened(**ONCE) as objects:
            assert await objects.put(key_of(content), path, sha256(content)) is True
    assert b"".join(parts[number] for number in sorted(parts)) == content


@pytest.mark.parametrize("pages", [3, 1_000_000])
async def test_all_unfinished_uploads_are_found(tmp_path: Path, pages: int) -> None:
    """The store lists a thousand at once; a list that never ends is given up."""

    def answer(request: StoreRequest) -> bytes:
        if request.method == "DELETE":
            return response(204)
        query = dict(parse_qsl(request.target.partition("?")[2]))
        marker = query.get("key-marker", "hub/lfs/a 0")
        number = int(marker.rpartition(" ")[2])
        key, following = quote(f"hub/lfs/a {number}"), quote(f"hub/lfs/a {number + 1}")
        upload = f"<Key>{key}</Key><UploadId>id-{number}</UploadId><Initiated>2020-01-01T00:00:00Z</Initiated>"
        more = (
            f"<IsTruncated>true</IsTruncated><NextKeyMarker>{following}</NextKeyMarker>" if number + 1 < pages else ""
        )
        name = "ListMultipartUploadsResult"
        return response(200, f"<{name}>{more}<Upload>{upload}</Upload></{name}>".encode())

    with run_far_end(answer) as far_end:
        async with far_end.place(tmp_path).opened(**ONCE) as objects:
            found = await objects.delete_unfinished(before=2_000_000_000 * SECOND)
        assert found == far_end.count("DELETE")
        assert (found == pages) if pages == 3 else (found >= 100)
        assert far_end.count("GET") <= 1_000


@pytest.mark.parametrize("marker", ["", "<NextKeyMarker>hub/lfs/a</NextKeyMarker>"], ids=["without", "the same"])
async def test_list_of_unfinished_uploads_that_does_not_continue_is_not_repeated(tmp_path: Path, marker: str) -> None:
    listed = f"<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>{marker}</ListMultipartUploadsResult>"
    with run_far_end(lambda _: response(200, listed.encode())) as far_end:
        async with far_end.place(tmp_path).opened(**ONCE) as objects:
            assert await objects.delete_unfinished(before=0) == 0
        assert far_end.count("GET") <= 2


async def test_store_without_conditional_writes_is_used_without(tmp_path: Path) -> None:
    def answer(request: StoreRequest) -> bytes:
        if request.method == "HEAD":
            return response(404)
        return error(501, "NotImplemented") if "if-none-match" in request.headers else response(200)

    with run_far_end(answer) as far_end:
        async with far_end.place(tmp_path).opened(**ONCE) as objects:
            assert await objects.put(KEY, CONTENT, sha256(CONTENT)) is True
            assert await objects.put(KEY, CONTENT, sha256(CONTENT)) is True
        assert ["if-none-match" in request.headers for request in far_end.requests if request.method == "PUT"] == [
            True,
            False,
            False,
        ]
        assert far_end.requests[-1].body == CONTENT
        assert far_end.requests[-1].headers["x-amz-content-sha256"] == sha256(CONTENT)


async def test_content_that_another_process_stored_first_is_not_an_error(tmp_path: Path) -> None:
    with run_far_end(lambda r: response(404) if r.method == "HEAD" else error(412, "PreconditionFailed")) as far_end:
        async with far_end.place(tmp_path).opened(**ONCE) as objects:
            assert await objects.put(KEY, CONTENT, sha256(CONTENT)) is False
