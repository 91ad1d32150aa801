"""A commit's request as it streams in: lines of JSON, of which those with a file may be a hundred megabytes long.

A short line is parsed as it is. Of a long one the text of `content` is written to disk as it comes, and the rest, which
must be short, is parsed with an empty text in its place. One without a content is a header, or refused. Small files
stay in memory only while there are few of them.
"""

import base64
import binascii
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from hubgate.server.errors import BadRequest, PayloadTooLarge, Unprocessable
from hubgate.server.hub.commits.model import AddFile, AddLarge, Content, Delete, Operation, Request
from hubgate.server.hub.git.threads import in_thread

LONGEST_LINE = 64 * 1024
MOST_OPERATIONS = 100_000
LONGEST_SUMMARY = 1000
LONGEST_DESCRIPTION = 64 * 1024
# In bytes: JSON escapes a character as up to twelve.
LONGEST_HEADER = 12 * (LONGEST_SUMMARY + LONGEST_DESCRIPTION) + 4096
# Of all small files together; what comes after that waits on disk.
MOST_IN_MEMORY = 4 * 1024 * 1024
# Of all that is said about files, their paths above all.
MOST_SAID = 64 * 1024 * 1024

_CONTENT = re.compile(rb'[{,]\s*"content"\s*:\s*"')
# A quote, or a backslash with all that may belong to it.
_SPECIAL = re.compile(rb'["\\]')
# Of a character that JSON escapes as two: a second one follows.
_FIRST_HALF = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_OID = re.compile(r"[0-9a-f]{64}\Z")
# JSON texts have none (RFC 8259, section 7); a newline would be the end of a line.
_CONTROL = re.compile(rb"[\x00-\x1f]")
_UNDERWAY = 1024 * 1024


class Line(msgspec.Struct):
    key: str
    value: dict[str, Any]


class Reader:
    """`draft` names a file to write to; `most` is the largest file taken."""

    def __init__(self, draft: Callable[[], Path], most: int, longest_line: int = LONGEST_LINE) -> None:
        self._draft = draft
        self._longest_line = longest_line
        self._most = most
        self._drafts: list[Path] = []
        self._header: dict[str, Any] | None = None
        self._operations: list[Operation] = []
        self._in_memory, self._said = 0, 0

    async def read(self, parts: AsyncIterator[bytes]) -> Request:
        buffer: bytes = b""
        long: _LongLine | _LongHeader | None = None
        async for part in parts:
            buffer += part
            while buffer:
                if long is None:
                    buffer = await self._take_short_lines(buffer)
                    if len(buffer) <= self._longest_line:
                        break
                    long, buffer = self._begin(buffer)
                else:
                    done, buffer = await long.feed(buffer)
                    if not done:
                        break
                    await self._take(long.line, long)
                    long = None
        if long is not None:
            await self._take(long.finished(), long)
        elif buffer.strip():
            await self._take(buffer)
        return self._request()

    async def _take_short_lines(self, buffer: bytes) -> bytes:
        """Those that are whole; what is left begins with a line that is not, or with a long one."""
        start = 0
        while 0 <= (end := buffer.find(b"\n", start)) <= start + self._longest_line:
            await self._take(buffer[start:end])
            start = end + 1
        return buffer[start:]

    def clean_up(self) -> None:
        for draft in self._drafts:
            draft.unlink(missing_ok=True)

    def _begin(self, buffer: bytes) -> tuple["_LongLine | _LongHeader", bytes]:
        match = _CONTENT.search(buffer[: self._longest_line])
        if match is None:
            return _LongHeader(), buffer
        return _LongLine(buffer[: match.end()], self._new_draft(), self._most), buffer[match.end() :]

    def _new_draft(self) -> Path:
        draft = self._draft()
        self._drafts.append(draft)
        return draft

    async def _take(self, line: bytes, long: "_LongLine | _LongHeader | None" = None) -> None:
        if not line.strip():
            return
        try:
            read = msgspec.json.decode(line, type=Line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise BadRequest(f"A line of the commit is not as it should be: {str(error)[:200]}") from None
        if isinstance(long, _LongHeader):
            long.check(read)
            long = None
        self._weigh(read)
        match read.key:
            case "header" if self._header is not None:
                raise BadRequest("The commit has more than one header.")
            case "header":
                self._header = {name: read.value.get(name) for name in ("summary", "description", "parentCommit")}
            case "file":
                content = await self._content(read.value, long)
                self._operations.append(AddFile(_text(read.value, "path"), content, _old(read.value)))
            case "lfsFile":
                self._operations.append(_large(read.value))
            case "deletedFile":
                self._operations.append(Delete(_text(read.value, "path"), file=True, folder=False))
            case "deletedFolder":
                path = _text(read.value, "path").rstrip("/")
                self._operations.append(Delete(path, file=False, folder=True))
            case "deletedEntry":
                self._operations.append(Delete(_text(read.value, "path").rstrip("/"), file=True, folder=True))
            case _:
                raise Unprocessable(f"A commit has no {read.key[:60]!r}.")

    def _weigh(self, line: Line) -> None:
        if len(self._operations) >= MOST_OPERATIONS:
            raise PayloadTooLarge(f"A commit changes at most {MOST_OPERATIONS:,} files.")
        self._said += sum(len(text) for name, text in line.value.items() if name != "content" and isinstance(text, str))
        if self._said > MOST_SAID:
            raise PayloadTooLarge("This is too much for one commit. Make several.")

    async def _content(self, value: dict[str, Any], long: "_LongLine | None") -> Content:
        encoding = value.get("encoding", "utf-8")
        if encoding not in ("base64", "utf-8"):
            raise Unprocessable("encoding is base64 or utf-8.")
        if long is not None:
            return await in_thread(long.content, encoding, self._new_draft)
        text = _text(value, "content")
        try:
            data = base64.b64decode(text, validate=True) if encoding == "base64" else text.encode()
        except (binascii.Error, ValueError):
            raise Unprocessable(f"The content of {_text(value, 'path')[:200]!r} is not {encoding}.") from None
        if len(data) > self._most:
            raise _too_large(self._most)
        self._in_memory += len(data)
        if self._in_memory <= MOST_IN_MEMORY:
            return Content(len(data), data)
        draft = self._new_draft()
        await in_thread(draft.write_bytes, data)
        return Content(len(data), file=draft)

    def _request(self) -> Request:
        header = self._header
        if header is None:
            raise BadRequest("The commit has no header.")
        summary, description = _text(header, "summary").strip(), header.get("description") or ""
        parent = header.get("parentCommit")
        if not summary or len(summary) > LONGEST_SUMMARY or "\0" in summary:
            raise Unprocessable(f"A commit has a summary of 1 to {LONGEST_SUMMARY:,} characters.")
        if not isinstance(description, str) or len(description) > LONGEST_DESCRIPTION or "\0" in description:
            raise Unprocessable(f"A description has at most {LONGEST_DESCRIPTION:,} characters.")
        if parent is not None and not (isinstance(parent, str) and re.fullmatch(r"[0-9a-fA-F]{7,40}", parent)):
            raise Unprocessable("parentCommit is the id of a commit.")
        return Request(summary, description, parent, self._operations)


class _LongLine:
    """`head` ends with the quote that opens the content."""

    def __init__(self, head: bytes, draft: Path, most: int) -> None:
        self._head, self._tail, self._open = head, b"", True
        self._draft = draft
        # Base64 is a third longer.
        self._left = most * 4 // 3 + 4
        self._most = most

    async def feed(self, data: bytes) -> tuple[bool, bytes]:
        """Whether the line has ended, and what of `data` was not used."""
        if self._open:
            end = _closing_quote(data)
            if end is None:
                # An escape may be cut in two: the last bytes wait for the next part.
                keep = _unfinished(data)
                await self._write(data[: len(data) - keep])
                return False, data[len(data) - keep :]
            await self._write(data[:end])
            self._open, data = False, data[end:]
        rest, newline, after = data.partition(b"\n")
        self._tail += rest
        if len(self._tail) > LONGEST_LINE:
            raise _too_long()
        return bool(newline), after

    @property
    def line(self) -> bytes:
        return self._head + self._tail

    def finished(self) -> bytes:
        if self._open:
            raise BadRequest("The commit ends in the middle of a file.")
        return self.line

    async def _write(self, raw: bytes) -> None:
        text = _unescaped(raw)
        self._left -= len(text)
        if self._left < 0:
            raise _too_large(self._most)
        # Also when there is nothing to write: an empty file is one.
        await in_thread(_append, self._draft, text)

    def content(self, encoding: str, new_draft: Callable[[], Path]) -> Content:
        if encoding == "utf-8":
            size, place = self._draft.stat().st_size, self._draft
        else:
            place = new_draft()
            with self._draft.open("rb") as source, place.open("wb") as target:
                _decode(source, target)
            size = place.stat().st_size
            self._draft.unlink()
        if size > self._most:
            raise _too_large(self._most)
        return Content(size, file=place)


class _LongHeader:
    """A long line that begins with no content."""

    def __init__(self) -> None:
        self._text = bytearray()

    async def feed(self, data: bytes) -> tuple[bool, bytes]:
        """As with a long line."""
        rest, newline, after = data.partition(b"\n")
        self._text += rest
        if len(self._text) > LONGEST_HEADER:
            raise _too_long()
        return bool(newline), after

    @property
    def line(self) -> bytes:
        return bytes(self._text)

    def finished(self) -> bytes:
        return self.line

    def check(self, read: Line) -> None:
        """It may have many bytes only because its few characters were escaped."""
        description = read.value.get("description")
        if read.key != "header" or not isinstance(description, str) or len(description) > LONGEST_DESCRIPTION:
            raise _too_long()


def _append(place: Path, data: bytes) -> None:
    with place.open("ab") as file:
        file.write(data)


def _closing_quote(data: bytes) -> int | None:
    at = 0
    while match := _SPECIAL.search(data, at):
        if data[match.start()] == ord('"'):
            return match.start()
        at = match.start() + 2
    return None


def _unfinished(data: bytes) -> int:
    """How many bytes at the end may be the beginning of an escape or of a letter of several bytes."""
    letter = _cut_letter(data)
    at = data.rfind(b"\\", max(len(data) - 12, 0))
    if at < 0:
        return letter
    if not _begins_escape(data, at):
        # The second of a pair: whole.
        return letter
    return max(len(data) - _pair_start(data, at), letter)


def _begins_escape(data: bytes, at: int) -> bool:
    """Whether the backslash at `at` does, or is what the one before it escapes."""
    start = at
    while start > 0 and data[start - 1] == ord("\\"):
        start -= 1
    return (at - start) % 2 == 0


def _cut_letter(data: bytes) -> int:
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            wanted = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < wanted else 0
        if byte < 0x80:
            return 0
    return 0


def _pair_start(data: bytes, at: int) -> int:
    """A \\uD83D wants its other half, which may be the escape at `at`."""
    start = max(at - 6, 0)
    return start if _FIRST_HALF.match(data, start, at) and _begins_escape(data, start) else at


def _unescaped(raw: bytes) -> bytes:
    try:
        text = raw.decode() if b"\\" not in raw else msgspec.json.decode(b'"' + raw + b'"', type=str)
        # Half a pair of escapes makes half a character.
        content = text.encode()
    except ValueError:
        raise _no_text() from None
    if _CONTROL.search(raw):
        raise _no_text()
    return content


def _too_long() -> BadRequest:
    return BadRequest(
        f"A line of the commit is too long. A content may be, and a description of {LONGEST_DESCRIPTION:,} characters."
    )


def _no_text() -> BadRequest:
    return BadRequest("The content of a file is not a JSON text.")


def _decode(source: BinaryIO, target: BinaryIO) -> None:
    rest, ended = b"", False
    while part := source.read(_UNDERWAY):
        data = rest + part
        whole = len(data) - len(data) % 4
        rest = data[whole:]
        if ended or b"=" in data[:-4]:
            raise Unprocessable("The content of a file is not base64.")
        target.write(_decoded(data[:whole]))
        ended = data[:whole].endswith(b"=")
    if rest:
        raise Unprocessable("The content of a file is not base64.")


def _decoded(data: bytes) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        raise Unprocessable("The content of a file is not base64.") from None


def _large(value: dict[str, Any]) -> AddLarge:
    oid, size = _text(value, "oid"), value.get("size")
    if value.get("algo", "sha256") != "sha256" or not _OID.match(oid):
        raise Unprocessable("oid is the SHA-256 of the file, in lower-case hex.")
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 0):
        raise Unprocessable("size is a number of bytes.")
    return AddLarge(_text(value, "path"), oid, size, _old(value))


def _old(value: dict[str, Any]) -> str | None:
    return _text(value, "oldPath") if value.get("oldPath") is not None else None


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    if not isinstance(found, str):
        raise Unprocessable(f"{name} is missing, or is no text.")
    return found


def _too_large(most: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"A file inside a commit has at most {most:,} bytes. Upload larger ones as large files (LFS)."
    )
