"""Hand-crafted packs and pushes that no git program would create."""

import base64
import hashlib
import socket
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import httpx
from tests.bed import lean_http

ZERO = "0" * 40
COMMIT, TREE, BLOB, TAG, OFS_DELTA, REF_DELTA = 1, 2, 3, 4, 6, 7
_NAMES = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob", TAG: b"tag"}
CAPABILITIES = "report-status side-band-64k agent=test"


@dataclass(frozen=True)
class Object:
    type: int
    content: bytes

    @cached_property
    def sha(self) -> str:
        return hashlib.sha1(b"%s %d\0%s" % (_NAMES[self.type], len(self.content), self.content)).hexdigest()


def blob(content: bytes) -> Object:
    return Object(BLOB, content)


def tree(*entries: tuple[str, bytes | str, Object]) -> Object:
    """Entries of mode, name and object, in the order given."""
    rows = [
        f"{mode} ".encode() + (name.encode() if isinstance(name, str) else name) + b"\0" + bytes.fromhex(item.sha)
        for mode, name, item in entries
    ]
    return Object(TREE, b"".join(rows))


def commit(root: Object | str, *parents: str, author: str = "Ada <ada@example.org> 1700000000 +0000") -> Object:
    sha = root if isinstance(root, str) else root.sha
    lines = [f"tree {sha}", *(f"parent {parent}" for parent in parents), f"author {author}", f"committer {author}"]
    return Object(COMMIT, "\n".join([*lines, "", "by hand\n"]).encode())


def entry(kind: int, content: bytes, *, declared_size: int | None = None, base_reference: bytes = b"") -> bytes:
    """An entry of a pack. `declared_size` overrides the size; `base_reference` is the base of a delta."""
    size = len(content) if declared_size is None else declared_size
    head = [kind << 4 | size & 15]
    size >>= 4
    while size:
        head[-1] |= 128
        head.append(size & 127)
        size >>= 7
    return bytes(head) + base_reference + zlib.compress(content, 1)


def pack(objects: Iterable[Object], *more: bytes, count: int | None = None) -> bytes:
    entries = [*(entry(item.type, item.content) for item in objects), *more]
    body = b"PACK" + struct.pack(">II", 2, len(entries) if count is None else count) + b"".join(entries)
    return body + hashlib.sha1(body).digest()


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def pkt_line(payload: bytes) -> bytes:
    return b"%04x%s" % (len(payload) + 4, payload)


def commands(changes: Sequence[tuple[str | None, str | None, str]], capabilities: str = CAPABILITIES) -> bytes:
    """Ref updates as (old, new, name). An `old` of None creates the ref; a `new` of None deletes it."""
    lines = [f"{old or ZERO} {new or ZERO} {name}".encode() for old, new, name in changes]
    lines[0] += b"\0" + capabilities.encode()
    return b"".join(map(pkt_line, lines)) + b"0000"


def push(url: str, token: str, body: bytes | Iterator[bytes], repo: str = "ada/tiny", **headers: str) -> httpx.Response:
    sent = {"content-type": "application/x-git-receive-pack-request", "authorization": f"Bearer {token}", **headers}
    return lean_http.post(f"{url}/{repo}/git-receive-pack", content=body, headers=sent)


def parse_pkt_lines(content: bytes) -> list[bytes]:
    found = []
    while content:
        length = int(content[:4], 16)
        found.append(content[4 : max(length, 4)])
        content = content[max(length, 4) :]
    return found


def bands(content: bytes) -> dict[int, bytes]:
    """The content of each side-band channel."""
    channels: dict[int, bytes] = {1: b"", 2: b"", 3: b""}
    for payload in parse_pkt_lines(content):
        if payload:
            channels[payload[0]] += payload[1:]
    return channels


def report_of(answer: httpx.Response) -> list[str]:
    """The lines of the report: `unpack ...`, then a line for each ref."""
    assert answer.status_code == 200, (answer.status_code, answer.text)
    return [payload.decode().strip() for payload in parse_pkt_lines(bands(answer.content)[1]) if payload]


class SlowPush:
    """A slow push: the head and the first part are sent at once, the rest by calls of `send`."""

    def __init__(self, address: tuple[str, int], token: str, first: bytes, repo: str = "ada/tiny") -> None:
        self.connection = socket.create_connection(address, timeout=60)
        login = base64.b64encode(f"x:{token}".encode()).decode()
        head = (
            f"POST /{repo}/git-receive-pack HTTP/1.1\r\nHost: hub\r\nAuthorization: Basic {login}\r\n"
            "Content-Type: application/x-git-receive-pack-request\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        self.connection.sendall(head.encode())
        self.send(first)

    def send(self, part: bytes) -> None:
        self.connection.sendall(b"%x\r\n%s\r\n" % (len(part), part))

    def finish(self) -> bytes:
        """End the body; the whole response."""
        self.connection.sendall(b"0\r\n\r\n")
        response = b""
        with self.connection:
            while not response.endswith(b"0\r\n\r\n"):
                part = self.connection.recv(65536)
                if not part:
                    break
                response += part
        return response

    def disconnect(self) -> None:
        self.connection.close()
