"""Parses a commit's request as it streams in: lines of JSON, which may be a hundred megabytes long if they contain a
file.

A short line is parsed directly. For a long line, `content` is written to disk as it is received, and the rest, which
must be short, is parsed with empty content. A long line without content must be a header. Small files stay in memory up
to a total size.
"""

import base64
import binascii
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from hubgate.server.errors import BadRequest, PayloadTooLarge, Unprocessable
from hubgate.server.hub.commits.model import AddFile, AddLargeFile, CommitRequest, Content, Delete, Operation
from hubgate.server.hub.git.threads import in_thread

MAX_LINE_BYTES = 64 * 1024
MAX_OPERATIONS = 100_000
MAX_SUMMARY_LENGTH = 1000
MAX_DESCRIPTION_LENGTH = 64 * 1024
# In bytes: JSON escapes a character as up to twelve.
MAX_HEADER_BYTES = 12 * (MAX_SUMMARY_LENGTH + MAX_DESCRIPTION_LENGTH) + 4096
# Total bytes of small files in memory; later files are written to disk.
MAX_BYTES_IN_MEMORY = 4 * 1024 * 1024
# Total characters of all values other than contents, mostly paths.
MAX_TEXT_LENGTH = 64 * 1024 * 1024

_CONTENT = re.compile(rb'[{,]\s*"content"\s*:\s*"')
# A quote, or the backslash of an escape.
_SPECIAL = re.compile(rb'["\\]')
# The high surrogate of a character that JSON escapes as a pair.
_FIRST_HALF = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_OID = re.compile(r"[0-9a-f]{64}\Z")
# Not allowed in JSON strings (RFC 8259, section 7); a newline would end the line.
_CONTROL = re.compile(rb"[\x00-\x1f]")
_CHUNK = 1024 * 1024


class CommitLine(msgspec.Struct):
    key: str
    value: dict[str, Any]


class CommitRequestReader:
    """Reads a commit request. `new_temporary` returns the path of a new temporary file. Files larger than
    `max_file_bytes` are rejected.
    """

    def __init__(
        self, new_temporary: Callable[[], Path], max_file_bytes: int, max_line_bytes: int = MAX_LINE_BYTES
    ) -> None:
        self._create_temporary = new_temporary
        self._max_line_bytes = max_line_bytes
        self._max_file_bytes = max_file_bytes
        self._temporaries: list[Path] = []
        self._header: dict[str, Any] | None = None
        self._operations: list[Operation] = []
        self._in_memory, self._text_length = 0, 0

    async def read(self, parts: AsyncIterator[bytes]) -> CommitRequest:
        buffer: bytes = b""
        long: _LongLine | _LongHeader | None = None
        async for part in parts:
            buffer += part
            while buffer:
                if long is None:
                    buffer = await self._parse_short_lines(buffer)
                    if len(buffer) <= self._max_line_bytes:
                        break
                    long, buffer = self._begin_long_line(buffer)
                else:
                    done, buffer = await long.feed(buffer)
                    if not done:
                        break
                    await self._parse_line(long.line, long)
                    long = None
        if long is not None:
            await self._parse_line(long.last_line(), long)
        elif buffer.strip():
            await self._parse_line(buffer)
        return self._request()

    async def _parse_short_lines(self, buffer: bytes) -> bytes:
        """Parse the complete short lines; return the rest, which begins with an incomplete or long line."""
        start = 0
        while 0 <= (end := buffer.find(b"\n", start)) <= start + self._max_line_bytes:
            await self._parse_line(buffer[start:end])
            start = end + 1
        return buffer[start:]

    async def clean_up(self) -> None:
        if self._temporaries:
            await in_thread(self._delete_temporaries)

    def _delete_temporaries(self) -> None:
        for temporary in self._temporaries:
            temporary.unlink(missing_ok=True)

    def _begin_long_line(self, buffer: bytes) -> tuple["_LongLine | _LongHeader", bytes]:
        match = _CONTENT.search(buffer[: self._max_line_bytes])
        if match is None:
            return _LongHeader(), buffer
        return _LongLine(buffer[: match.end()], self._new_temporary(), self._max_file_bytes), buffer[match.end() :]

    def _new_temporary(self) -> Path:
        """The path of a new temporary file, which `clean_up` deletes."""
        temporary = self._create_temporary()
        self._temporaries.append(temporary)
        return temporary

    async def _parse_line(self, line: bytes, long: "_LongLine | _LongHeader | None" = None) -> None:
        if not line.strip():
            return
        try:
            parsed = msgspec.json.decode(line, type=CommitLine)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise BadRequest(f"A line of the commit is invalid: {str(error)[:200]}") from None
        if isinstance(long, _LongHeader):
            long.check(parsed)
            long = None
        self._check_limits(parsed)
        match parsed.key:
            case "header" if self._header is not None:
                raise BadRequest("The commit has more than one header.")
            case "header":
                self._header = {name: parsed.value.get(name) for name in ("summary", "description", "parentCommit")}
            case "file":
                content = await self._content(parsed.value, long)
                self._operations.append(AddFile(_text(parsed.value, "path"), content, _old_path(parsed.value)))
            case "lfsFile":
                self._operations.append(_parse_large_file(parsed.value))
            case "deletedFolder":
                path = _text(parsed.value, "path").rstrip("/")
                self._operations.append(Delete(path, file=False, folder=True))
            case "deletedFile" | "deletedEntry":
                # Clients that do not know the type delete folders as files.
                self._operations.append(Delete(_text(parsed.value, "path").rstrip("/"), file=True, folder=True))
            case _:
                raise Unprocessable(f"Unknown key in a line of the commit: {parsed.key[:60]!r}.")

    def _check_limits(self, line: CommitLine) -> None:
        if len(self._operations) >= MAX_OPERATIONS:
            raise PayloadTooLarge(f"A commit may change at most {MAX_OPERATIONS:,} files.")
        self._text_length += sum(
            len(text) for name, text in line.value.items() if name != "content" and isinstance(text, str)
        )
        if self._text_length > MAX_TEXT_LENGTH:
            raise PayloadTooLarge("The commit is too large. Split it into several commits.")

    async def _content(self, value: dict[str, Any], long: "_LongLine | None") -> Content:
        encoding = value.get("encoding", "utf-8")
        if encoding not in ("base64", "utf-8"):
            raise Unprocessable("encoding must be base64 or utf-8.")
        if long is not None:
            return await in_thread(long.content, encoding, self._new_temporary)
        text = _text(value, "content")
        try:
            data = base64.b64decode(text, validate=True) if encoding == "base64" else text.encode()
        except (binascii.Error, ValueError):
            raise Unprocessable(f"The content of {_text(value, 'path')[:200]!r} is not {encoding}.") from None
        if len(data) > self._max_file_bytes:
            raise _too_large(self._max_file_bytes)
        self._in_memory += len(data)
        if self._in_memory <= MAX_BYTES_IN_MEMORY:
            return Content(len(data), data)
        temporary = self._new_temporary()
        await in_thread(temporary.write_bytes, data)
        return Content(len(data), file=temporary)

    def _request(self) -> CommitRequest:
        header = self._header
        if header is None:
            raise BadRequest("The commit has no header.")
        summary, description = _text(header, "summary").strip(), header.get("description") or ""
        parent = header.get("parentCommit")
        check_message(summary, description)
        if parent is not None and not (isinstance(parent, str) and re.fullmatch(r"[0-9a-fA-F]{7,40}", parent)):
            raise Unprocessable("parentCommit must be the id of a commit.")
        return CommitRequest(summary, description, parent, self._operations)


def check_message(summary: str, description: object) -> None:
    if not summary or len(summary) > MAX_SUMMARY_LENGTH or "\0" in summary:
        raise Unprocessable(f"The summary must have 1 to {MAX_SUMMARY_LENGTH:,} characters and no NUL.")
    if not isinstance(description, str) or len(description) > MAX_DESCRIPTION_LENGTH or "\0" in description:
        raise Unprocessable(f"The description must have at most {MAX_DESCRIPTION_LENGTH:,} characters and no NUL.")


class _LongLine:
    """A long line with a file's content. `head` ends with the quote that opens the content."""

    def __init__(self, head: bytes, temporary: Path, max_file_bytes: int) -> None:
        self._head, self._tail, self._open = head, b"", True
        self._temporary = temporary
        # Base64 is a third longer than the file.
        self._remaining = max_file_bytes * 4 // 3 + 4
        self._max_file_bytes = max_file_bytes

    async def feed(self, data: bytes) -> tuple[bool, bytes]:
        """Whether the line is complete, and the unused rest of `data`."""
        if self._open:
            end = _closing_quote(data)
            if end is None:
                # An escape may be split between parts: its first bytes wait for the next part.
                pending = _incomplete_tail(data)
                await self._write(data[: len(data) - pending])
                return False, data[len(data) - pending :]
            await self._write(data[:end])
            self._open, data = False, data[end:]
        rest, newline, after = data.partition(b"\n")
        self._tail += rest
        if len(self._tail) > MAX_LINE_BYTES:
            raise _too_long()
        return bool(newline), after

    @property
    def line(self) -> bytes:
        return self._head + self._tail

    def last_line(self) -> bytes:
        if self._open:
            raise BadRequest("The commit ends in the middle of a file.")
        return self.line

    async def _write(self, raw: bytes) -> None:
        text = _unescaped(raw)
        self._remaining -= len(text)
        if self._remaining < 0:
            raise _too_large(self._max_file_bytes)
        # Also for empty text: an empty file must exist too.
        await in_thread(_append, self._temporary, text)

    def content(self, encoding: str, new_temporary: Callable[[], Path]) -> Content:
        if encoding == "utf-8":
            size, path = self._temporary.stat().st_size, self._temporary
        else:
            path = new_temporary()
            with self._temporary.open("rb") as source, path.open("wb") as target:
                _decode(source, target)
            size = path.stat().st_size
            self._temporary.unlink()
        if size > self._max_file_bytes:
            raise _too_large(self._max_file_bytes)
        return Content(size, file=path)


class _LongHeader:
    """A long line without content, which must be the header."""

    def __init__(self) -> None:
        self._text = bytearray()

    async def feed(self, data: bytes) -> tuple[bool, bytes]:
        """Whether the line is complete, and the unused rest of `data`."""
        rest, newline, after = data.partition(b"\n")
        self._text += rest
        if len(self._text) > MAX_HEADER_BYTES:
            raise _too_long()
        return bool(newline), after

    @property
    def line(self) -> bytes:
        return bytes(self._text)

    def last_line(self) -> bytes:
        return self.line

    def check(self, parsed: CommitLine) -> None:
        """Reject a long line unless it is a header whose description is valid and only long because of escapes."""
        description = parsed.value.get("description")
        if parsed.key != "header" or not isinstance(description, str) or len(description) > MAX_DESCRIPTION_LENGTH:
            raise _too_long()


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def _closing_quote(data: bytes) -> int | None:
    at = 0
    while match := _SPECIAL.search(data, at):
        if data[match.start()] == ord('"'):
            return match.start()
        at = match.start() + 2
    return None


def _incomplete_tail(data: bytes) -> int:
    """The number of bytes at the end that may be an incomplete escape or multi-byte character."""
    cut = _incomplete_character(data)
    at = data.rfind(b"\\", max(len(data) - 12, 0))
    if at < 0:
        return cut
    if not _begins_escape(data, at):
        # The second backslash of `\\`, a complete escape.
        return cut
    return max(len(data) - _pair_start(data, at), cut)


def _begins_escape(data: bytes, at: int) -> bool:
    """Whether the backslash at `at` begins an escape rather than being escaped itself."""
    start = at
    while start > 0 and data[start - 1] == ord("\\"):
        start -= 1
    return (at - start) % 2 == 0


def _incomplete_character(data: bytes) -> int:
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < length else 0
        if byte < 0x80:
            return 0
    return 0


def _pair_start(data: bytes, at: int) -> int:
    """The start of a surrogate pair such as \\uD83D\\uDE00 if the escape at `at` may be its second half, else `at`."""
    start = max(at - 6, 0)
    return start if _FIRST_HALF.match(data, start, at) and _begins_escape(data, start) else at


def _unescaped(raw: bytes) -> bytes:
    try:
        text = raw.decode() if b"\\" not in raw else msgspec.json.decode(b'"' + raw + b'"', type=str)
        # Fails on a lone surrogate.
        content = text.encode()
    except ValueError:
        raise _invalid_text() from None
    if _CONTROL.search(raw):
        raise _invalid_text()
    return content


def _too_long() -> BadRequest:
    return BadRequest(
        f"A line of the commit is too long. Only the content of a file and a description of up to "
        f"{MAX_DESCRIPTION_LENGTH:,} characters may be this long."
    )


def _invalid_text() -> BadRequest:
    return BadRequest("The content of a file is not a valid JSON string.")


def _decode(source: BinaryIO, target: BinaryIO) -> None:
    rest, ended = b"", False
    while part := source.read(_CHUNK):
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


def _parse_large_file(value: dict[str, Any]) -> AddLargeFile:
    oid, size = _text(value, "oid"), value.get("size")
    if value.get("algo", "sha256") != "sha256" or not _OID.match(oid):
        raise Unprocessable("oid must be the SHA-256 of the file, in lower-case hex.")
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 0):
        raise Unprocessable("size must be a number of bytes.")
    return AddLargeFile(_text(value, "path"), oid, size, _old_path(value))


def _old_path(value: dict[str, Any]) -> str | None:
    return _text(value, "oldPath") if value.get("oldPath") is not None else None


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    if not isinstance(found, str):
        raise Unprocessable(f"{name} is missing or is not a string.")
    return found


def _too_large(max_file_bytes: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"A file inside a commit may have at most {max_file_bytes:,} bytes. Upload larger ones as large files (LFS)."
    )
