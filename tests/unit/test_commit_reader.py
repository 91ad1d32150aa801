"""Memory used while reading a commit."""

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from hubgate.server.errors import PayloadTooLarge
from hubgate.server.hub.commits.model import AddFile
from hubgate.server.hub.commits.request_reader import (
    MAX_BYTES_IN_MEMORY,
    MAX_OPERATIONS,
    MAX_TEXT_LENGTH,
    CommitRequestReader,
)

HEADER = json.dumps({"key": "header", "value": {"summary": "x"}}) + "\n"


def reader(folder: Path, **given: int) -> CommitRequestReader:
    numbers = iter(range(10_000))
    return CommitRequestReader(lambda: folder / str(next(numbers)), 1024 * 1024, **given)


async def lines(count: int, size: int, path: str = "f") -> AsyncIterator[bytes]:
    yield HEADER.encode()
    for number in range(count):
        value = {"path": f"{path}{number}", "content": "x" * size, "encoding": "utf-8"}
        yield json.dumps({"key": "file", "value": value}).encode() + b"\n"


async def test_small_files_beyond_a_few_are_stored_on_disk(tmp_path: Path) -> None:
    reading_it = reader(tmp_path)
    request = await reading_it.read(lines(200, 50_000))
    contents = [operation.content for operation in request.operations if isinstance(operation, AddFile)]
    assert len(contents) == 200
    in_memory = sum(len(content.data) for content in contents)
    assert in_memory <= MAX_BYTES_IN_MEMORY < 200 * 50_000
    drafts = [content.file for content in contents if content.file is not None]
    assert all(draft.read_bytes() == b"x" * 50_000 for draft in drafts)
    assert in_memory + sum(draft.stat().st_size for draft in drafts) == 200 * 50_000
    await reading_it.clean_up()
    assert list(tmp_path.iterdir()) == []


async def test_metadata_of_files_is_limited(tmp_path: Path) -> None:
    with pytest.raises(PayloadTooLarge, match="too large"):
        await reader(tmp_path).read(lines(MAX_TEXT_LENGTH // 60_000 + 1, 1, "x" * 60_000))
    with pytest.raises(PayloadTooLarge, match="100,000 files"):
        await reader(tmp_path).read(lines(MAX_OPERATIONS + 1, 1))


async def test_text_may_be_split_anywhere(tmp_path: Path) -> None:
    """Also between the halves of a surrogate pair, and beside text that only resembles an escape."""
    text = '😀😀é\\ud83d\\\\ude00\\😀\ud7ff\ue000"\\"\n\x01\\u\\\\\\n😀x\\u00e9'
    plain = HEADER + json.dumps({"key": "file", "value": {"content": "x" * 30 + text, "path": "f"}}, ensure_ascii=False)
    escaped = HEADER + json.dumps({"key": "file", "value": {"content": "x" * 30 + text, "path": "f"}})
    shouted = escaped.replace("\\ud83d\\ude00", "\\uD83D\\uDE00")
    for body in (plain.encode(), escaped.encode(), shouted.encode()):
        pieces = [[body[:cut], body[cut:]] for cut in range(len(HEADER), len(body))]
        pieces += [[body[at : at + size] for at in range(0, len(body), size)] for size in range(1, 14)]
        for parts in pieces:
            request = await reader(tmp_path, max_line_bytes=64).read(_each(parts))
            (operation,) = request.operations
            assert isinstance(operation, AddFile)
            assert operation.content.file is not None
            assert operation.content.file.read_text() == "x" * 30 + text, parts
            operation.content.file.unlink()


async def _each(parts: Sequence[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
