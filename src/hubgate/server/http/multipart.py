"""Reads a form with files (multipart/form-data, RFC 7578) while it is received: first its fields, then its files, one
after another.

As strict as `forms.py`: every part has a name in quotes, as browsers send it, and no field follows a file, so that the
CSRF field is checked before the first file is read.
"""

import re
from collections.abc import AsyncIterator

from msgspec import Struct

from hubgate.server.errors import BadRequest, PayloadTooLarge
from hubgate.server.http.forms import MAX_FIELDS, Fields

MULTIPART_TYPE = "multipart/form-data"
# Of the fields, without files.
MAX_FIELD_BYTES = 512 * 1024
# A path has up to 4,096 bytes; browsers escape quotes in it.
MAX_HEADER_BYTES = 16 * 1024
# Also of files without a name, which a browser sends if no file was chosen: each takes time to parse.
MAX_FILES = 2_000

_BOUNDARY = re.compile(r"multipart/form-data;\s*boundary=(\"?)([\w'()+,./:=?-]{1,70})\1\s*\Z", re.IGNORECASE)
_DISPOSITION = re.compile(
    r'content-disposition: *form-data; *name="([^"]*)"(?:; *filename="([^"]*)")?\Z', re.IGNORECASE
)
# Browsers escape these characters in names, and no others (HTML, section 4.10.21.8).
_ESCAPES = {"%22": '"', "%0D": "\r", "%0A": "\n"}
_ESCAPED = re.compile("|".join(_ESCAPES))


class FilePart(Struct, frozen=True):
    """A file of a form: the name of its field, and the name of the file, which the client chose."""

    field: str
    name: str


class MultipartForm:
    """A form that is being received. Call `read_fields` first, then `next_file` until it returns None."""

    def __init__(self, content_type: str, body: AsyncIterator[bytes]) -> None:
        boundary = _BOUNDARY.match(content_type)
        if boundary is None:
            raise BadRequest("The boundary of the form is missing or invalid.")
        self._delimiter = b"\r\n--" + boundary[2].encode()
        self._body = body
        # The first delimiter has no line break before it.
        self._buffer = b"\r\n"
        # What is before it has been read. Cutting it off after each part would copy megabytes a thousand times (O70).
        self._position = 0
        self._started, self._ended = False, False
        self._pending: FilePart | None = None
        self._is_reading_file = False
        self._file_count = 0

    async def read_fields(self) -> Fields:
        """The fields before the first file."""
        pairs: list[tuple[str, str]] = []
        size = 0
        while (part := await self._next_part()) is not None:
            name, file_name = part
            if file_name is not None:
                self._pending = FilePart(name, file_name)
                break
            value = bytearray()
            async for content in self._content():
                size += len(content)
                if size > MAX_FIELD_BYTES:
                    raise PayloadTooLarge(f"The fields of a form may have at most {MAX_FIELD_BYTES:,} bytes.")
                value += content
            pairs.append((name, _decoded(bytes(value))))
            if len(pairs) > MAX_FIELDS:
                raise BadRequest(f"More than {MAX_FIELDS} fields were sent.")
        return Fields(pairs)

    async def next_file(self) -> FilePart | None:
        """The next file, or None after the last. The content of the previous file is skipped if it was not read."""
        if self._is_reading_file:
            async for _ in self.content():
                pass
        found, self._pending = self._pending, None
        if found is None:
            part = await self._next_part()
            if part is None:
                return None
            name, file_name = part
            if file_name is None:
                raise BadRequest("A field follows a file. Send all fields first.")
            found = FilePart(name, file_name)
        self._file_count += 1
        if self._file_count > MAX_FILES:
            raise PayloadTooLarge(f"A form may have at most {MAX_FILES:,} files.")
        self._is_reading_file = True
        return found

    async def content(self) -> AsyncIterator[bytes]:
        """The content of the file that `next_file` returned, in parts."""
        async for part in self._content():
            yield part
        self._is_reading_file = False

    async def skip_rest(self) -> None:
        """Receive what is left of the form without reading it."""
        self._ended, self._buffer, self._position = True, b"", 0
        async for _ in self._body:
            pass

    async def _next_part(self) -> tuple[str, str | None] | None:
        """The name of the next part and that of its file, if it is a file; None after the last part."""
        if self._ended:
            return None
        if not self._started:
            self._started = True
            if await self._take(len(self._delimiter)) != self._delimiter:
                raise _malformed()
        following = await self._take(2)
        if following == b"--":
            # What follows the last delimiter has no meaning.
            await self.skip_rest()
            return None
        if following != b"\r\n":
            raise _malformed()
        return _parse_header(await self._header())

    async def _header(self) -> bytes:
        while (end := self._buffer.find(b"\r\n\r\n", self._position, self._position + MAX_HEADER_BYTES)) < 0:
            if len(self._buffer) - self._position >= MAX_HEADER_BYTES:
                raise BadRequest("The header of a file is too long.")
            await self._receive()
        header = await self._take(end - self._position)
        await self._take(4)
        return header

    async def _content(self) -> AsyncIterator[bytes]:
        """The content of the current part, up to the next delimiter, which is consumed."""
        while (end := self._buffer.find(self._delimiter, self._position)) < 0:
            # The end of the buffer may be the beginning of the delimiter.
            certain = len(self._buffer) - len(self._delimiter) + 1
            if certain > self._position:
                part, self._position = self._buffer[self._position : certain], certain
                yield part
            await self._receive()
        part, self._position = self._buffer[self._position : end], end + len(self._delimiter)
        if part:
            yield part

    async def _take(self, count: int) -> bytes:
        while len(self._buffer) - self._position < count:
            await self._receive()
        start, self._position = self._position, self._position + count
        return self._buffer[start : self._position]

    async def _receive(self) -> None:
        async for part in self._body:
            if part:
                self._buffer, self._position = self._buffer[self._position :] + part, 0
                return
        raise BadRequest("The form ends early.")


def _parse_header(header: bytes) -> tuple[str, str | None]:
    found = [match for line in _decoded(header).split("\r\n") if (match := _DISPOSITION.match(line))]
    if len(found) != 1:
        raise _malformed()
    name, file_name = found[0].groups()
    return _unescaped(name), None if file_name is None else _unescaped(file_name)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], text)


def _decoded(value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise BadRequest("A field is not valid UTF-8.") from None
    if "\0" in text:
        raise BadRequest("A field contains a NUL byte.")
    return text


def _malformed() -> BadRequest:
    return BadRequest("The form is malformed.")
