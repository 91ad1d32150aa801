"""A store that is away, slow, full, or answers with errors and half bodies: one clear error, in bounded time, and
nothing that is wrong.
"""

import random
from pathlib import Path
from typing import Any

import pytest
from tests.objects.misbehaving import StoreRequest, error, part_of, response, run_far_end
from tests.objects.stores import PART, key_of, keys_in, put, read, sha256, written_file

from hubgate.server.errors import HubError
from hubgate.server.objects.model import Objects, StoreFull, StoreUnavailable

CONTENT = random.Random(2).randbytes(100_000)
KEY = key_of(CONTENT)
# Requests are repeated at once, and silence is noticed soon.
QUICK: dict[str, Any] = {"retry_seconds": 5.0, "silence_seconds": 0.5, "first_pause": 0.01}
ONCE: dict[str, Any] = {"retry_seconds": 0.0, "silence_seconds": 0.5}


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
        async with far_end.place(tmp_path).opened(**ONCE) as objects:
            with pytest.raises(StoreUnavailable) as raised:
                await objects.size(KEY)
            assert "ReadTimeout" in str(raised.value.__cause__)
            with pytest.raises(StoreUnavailable):
                await read(objects, KEY, 0, 9)
        assert len(far_end.requests) == 2


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
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n<ListBu", StoreUnavailable),
        (b"\x00\x01\x02 not HTTP\r\n\r\n", StoreUnavailable),
    ],
    ids=[
        *("full", "over quota", "forbidden", "no bucket", "another region", "page", "text", "document type", "endless"),
        *("half", "another protocol"),
    ],
)
async def test_other_answers_are_errors(tmp_path: Path, answer: bytes, expected: type[HubError]) -> None:
    with run_far_end(lambda _: answer) as far_end:
        async with far_end.place(tmp_path).opened(**ONCE) as objects:
            with pytest.raises(expected):
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


async def test_lost_answer_to_the_last_request_is_not_an_error(tmp_path: Path) -> None:
    """The store has joined the parts, the answer is lost, and the repeated request finds no upload."""

    def answer(request: StoreRequest) -> bytes:
        match request.method, "uploads=" in request.target:
            case "HEAD", _:
                return response(200) if far_end.count("HEAD") > 1 else response(404)
            case "POST", True:
                return response(200, STARTED)
            case "PUT", _:
                return response(200, etag='"e"')
        return b"" if far_end.count("POST") == 2 else error(404, "NoSuchUpload")

    content = random.Random(4).randbytes(PART + 1)
    with run_far_end(answer) as far_end:
        async with far_end.place(tmp_path).opened(**QUICK) as objects:
            assert await objects.put(key_of(content), written_file(tmp_path, content), sha256(content)) is True


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
