"""A client of the storage API (Xet), built from the formats: it sends xorbs and shards, and composes files itself."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote

import httpx
from tests.bed import lean_http
from tests.bed.repos import send_lines

from hubgate.server.hub.xet.chunk_format import ChunkDecoder, decode_chunks, encode_chunk
from hubgate.server.hub.xet.chunking import chunks
from hubgate.server.hub.xet.hashes import chunk_hash, hash_text
from hubgate.server.hub.xet.shard import Term
from hubgate.server.hub.xet.shard_writer import NewFile, upload_shard
from hubgate.server.hub.xet.tree import file_hash
from hubgate.server.hub.xet.xorb_table import XorbTable


@dataclass(frozen=True)
class Xorb:
    """A xorb as a client sends it."""

    body: bytes
    table: XorbTable

    @cached_property
    def raw_hash(self) -> bytes:
        return self.table.xorb_hash()

    @property
    def hash(self) -> str:
        return hash_text(self.raw_hash)

    def term(self, start: int = 0, end: int | None = None) -> Term:
        end = len(self.table) if end is None else end
        return Term(self.raw_hash, start, end, self.table.size_between(start, end))


def xorb_of(content: bytes) -> Xorb:
    """A xorb with all chunks of some content."""
    return xorb_of_chunks(chunks([content]))


def xorb_of_chunks(contents: Iterable[bytes]) -> Xorb:
    body = b"".join(map(encode_chunk, contents))
    rows = ((chunk_hash(chunk.content), chunk.length, len(chunk.content)) for chunk in ChunkDecoder().feed(body))
    return Xorb(body, XorbTable(rows))


def file_of(content: bytes, *parts: tuple[Xorb, int, int], sha256: str | None = None) -> NewFile:
    """A file composed of ranges of chunks, as a shard registers it."""
    rows = [(xorb.table.hash_of(at), xorb.table.size_of(at)) for xorb, start, end in parts for at in range(start, end)]
    return NewFile(
        file_hash(rows),
        [xorb.term(start, end) for xorb, start, end in parts],
        [xorb.table.range_hash(start, end) for xorb, start, end in parts],
        sha256 or hashlib.sha256(content).hexdigest(),
    )


def whole_file(content: bytes, xorb: Xorb, **more: Any) -> NewFile:
    """A file that consists of all chunks of a xorb."""
    return file_of(content, (xorb, 0, len(xorb.table)), **more)


def shard_of(files: Sequence[NewFile], xorbs: Sequence[Xorb] = ()) -> bytes:
    return upload_shard(files, [(xorb.raw_hash, xorb.table) for xorb in xorbs])


@dataclass
class XetClient:
    """A user's client for one repo and revision. `hub` sends the user's token to the hub's own API."""

    hub: httpx.Client
    repo: str
    repo_type: str = "model"
    rev: str = "main"
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def request_token(self, right: str = "write") -> httpx.Response:
        rev = quote(self.rev, safe="")
        return self.hub.get(f"/api/{self.repo_type}s/{self.repo}/xet-{right}-token/{rev}{self.query}")

    def sign_in(self, right: str = "write") -> "XetClient":
        """Get a token, with which all later requests are sent."""
        answer = self.request_token(right)
        assert answer.status_code == 200, answer.text
        access = answer.json()
        assert access["casUrl"] == f"{str(self.hub.base_url).rstrip('/')}/xet"
        self.headers = {"authorization": f"Bearer {access['accessToken']}"}
        return self

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.hub.get(f"/xet{path}", headers={**self.headers, **headers})

    def post(self, path: str, body: bytes) -> httpx.Response:
        return self.hub.post(f"/xet{path}", content=body, headers=self.headers)

    def send_xorb(self, xorb: Xorb, body: bytes | None = None) -> httpx.Response:
        return self.post(f"/v1/xorbs/default/{xorb.hash}", xorb.body if body is None else body)

    def send_shard(self, files: Sequence[NewFile], xorbs: Sequence[Xorb] = ()) -> httpx.Response:
        return self.post("/v1/shards", shard_of(files, xorbs))

    def look_up(self, chunk: bytes) -> httpx.Response:
        return self.get(f"/v1/chunks/default-merkledb/{hash_text(chunk)}")

    def upload(self, content: bytes) -> NewFile:
        """Send a file with one xorb and register it."""
        xorb = xorb_of(content)
        file = whole_file(content, xorb)
        sent = self.send_xorb(xorb)
        assert sent.status_code == 200, sent.text
        registered = self.send_shard([file], [xorb])
        assert registered.status_code == 200, registered.text
        return file

    def commit(self, path: str, content: bytes) -> httpx.Response:
        """Commit a file that was registered."""
        oid = hashlib.sha256(content).hexdigest()
        value = {"path": path, "algo": "sha256", "oid": oid, "size": len(content)}
        return send_lines(self.hub, self.repo, ("lfsFile", value), rev=self.rev, query=self.query)

    def download(self, file: NewFile, version: str = "v2", span: tuple[int, int] | None = None) -> bytes:
        """Compose a file, or the bytes from `span[0]` up to `span[1]`, from the ranges that the hub names."""
        headers = {"range": f"bytes={span[0]}-{span[1] - 1}"} if span else {}
        answer = self.get(f"/{version}/reconstructions/{hash_text(file.hash)}", **headers)
        assert answer.status_code == 200, answer.text
        plan = answer.json()
        found = _fetched(plan)
        content = b"".join(
            found[term["hash"], index]
            for term in plan["terms"]
            for index in range(term["range"]["start"], term["range"]["end"])
        )
        start = plan["offset_into_first_range"]
        return content[start : start + span[1] - span[0] if span else None]


def _fetched(plan: dict[str, Any]) -> dict[tuple[str, int], bytes]:
    """The content of all chunks of an answer of either version, by xorb and number."""
    if "xorbs" in plan:
        wanted = [
            (xorb, fetch["url"], part["chunks"], part["bytes"])
            for xorb, fetches in plan["xorbs"].items()
            for fetch in fetches
            for part in fetch["ranges"]
        ]
    else:
        wanted = [
            (xorb, fetch["url"], fetch["range"], fetch["url_range"])
            for xorb, fetches in plan["fetch_info"].items()
            for fetch in fetches
        ]
    found: dict[tuple[str, int], bytes] = {}
    for xorb, url, numbers, span in wanted:
        # Without a token: the signed address grants access.
        answer = lean_http.get(url, headers={"range": f"bytes={span['start']}-{span['end']}"})
        assert answer.status_code == 206, answer.text
        for number, content in enumerate(decode_chunks(answer.content), numbers["start"]):
            found[xorb, number] = content
    return found
