"""The Xet formats of the hub against hf_xet, which can store its uploads in a folder (`local://`), without a server."""

import hashlib
import json
import random
import struct
import time
from pathlib import Path

import pytest
from tests.bed.clients import Client

from hubgate.server.hub.xet.chunk_format import decode_chunks
from hubgate.server.hub.xet.chunking import chunks
from hubgate.server.hub.xet.file_check import check_file
from hubgate.server.hub.xet.hashes import chunk_hash, hash_text, parse_hash
from hubgate.server.hub.xet.plan import Window, plan, select
from hubgate.server.hub.xet.shard import parse_terms, parse_upload
from hubgate.server.hub.xet.shard_writer import lookup_answer
from hubgate.server.hub.xet.tree import file_hash
from hubgate.server.hub.xet.xorb import verify_xorb
from hubgate.server.hub.xet.xorb_table import XorbTable

UPLOAD = """
import json, sys, warnings
warnings.simplefilter("ignore")
import hf_xet
contents = [open(path, "rb").read() for path in sys.argv[2:]]
uploaded = hf_xet.upload_bytes(contents, "local://" + sys.argv[1], None, None, None, "model")
print(json.dumps([file.hash for file in uploaded]))
"""


def contents() -> list[bytes]:
    """Content for each compression, content that repeats, an empty file and one of a byte."""
    source = random.Random(24)
    text = b"".join(b"%d,%d,row\n" % (number, number * number) for number in range(20_000))
    numbers = b"".join(struct.pack("<f", number * 0.001) for number in range(50_000)) + b"odd"
    incompressible = source.randbytes(300_000)
    return [text, numbers, incompressible, b"a", b"", incompressible + text]


class Folder:
    """A folder to which hf_xet uploads."""

    def __init__(self, client: Client, path: Path) -> None:
        self._client, self._path = client, path

    def upload(self, files: list[Path]) -> list[str]:
        """Upload the files and return their hashes."""
        more = {"HF_XET_CACHE": str(self._client.home / "xet")}
        done = self._client.run("python", "-c", UPLOAD, str(self._path), *map(str, files), **more)
        assert done.returncode == 0, done.stderr
        return [str(value) for value in json.loads(done.stdout)]

    def xorbs(self) -> dict[bytes, bytes]:
        found = (self._path / "xet/xorbs/xorbs").glob("default." + "[0-9a-f]" * 64)
        return {parse_hash(path.suffix[1:]): path.read_bytes() for path in found}

    def shards(self) -> list[bytes]:
        return [path.read_bytes() for path in (self._path / "xet/xorbs/shards").glob("*.mdb")]

    def add_to_cache(self, shard: bytes) -> None:
        """Store an answer to a look-up where the client stores answers."""
        cache = self._path / "xet/shard-cache"
        cache.mkdir(parents=True)
        (cache / f"{hash_text(chunk_hash(shard))}.mdb").write_bytes(shard)


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return Client("huggingface_hub-2.4", tmp_path, "http://127.0.0.1:9")


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = []
    for number, content in enumerate(contents()):
        paths.append(tmp_path / f"file{number}")
        paths[-1].write_bytes(content)
    return paths


def restored(terms: bytes, size: int, tables: dict[bytes, XorbTable], xorbs: dict[bytes, bytes], start: int) -> bytes:
    selection = select(parse_terms(terms), start, max(size, start + 1))
    assert selection is not None
    found = plan(selection, tables)
    window = Window(found.skip, found.length)
    return b"".join(
        window.take(chunk)
        for piece in found.pieces
        for chunk in decode_chunks(xorbs[piece.term.xorb][piece.stored_start : piece.stored_end])
    )


def test_uploads_are_read_and_restored(client: Client, files: list[Path], tmp_path: Path) -> None:
    folder = Folder(client, tmp_path / "cas")
    hashes = folder.upload(files)
    for content, value in zip(contents(), hashes, strict=True):
        assert hash_text(file_hash((chunk_hash(chunk), len(chunk)) for chunk in chunks([content]))) == value

    xorbs = folder.xorbs()
    tables = {value: verify_xorb([data], value) for value, data in xorbs.items()}
    [shard] = folder.shards()
    checked = {
        hash_text(found.hash): found for found in (check_file(file, tables.get) for file in parse_upload(shard).files())
    }
    for content, value in zip(contents(), hashes, strict=True):
        file = checked[value]
        assert (file.sha256, file.size) == (hashlib.sha256(content).hexdigest(), len(content))
        for start in {0, len(content) // 3, max(0, len(content) - 1)}:
            assert restored(file.terms, file.size, tables, xorbs, start) == content[start:]


def test_clients_deduplicate_by_lookup_answers(client: Client, files: list[Path], tmp_path: Path) -> None:
    first, second = Folder(client, tmp_path / "first"), Folder(client, tmp_path / "second")
    first.upload(files)
    tables = {value: verify_xorb([data], value) for value, data in first.xorbs().items()}
    now = int(time.time())
    second.add_to_cache(lookup_answer(tables.items(), bytes(range(1, 33)), now, now + 3600))

    second.upload(files[:3])
    assert second.xorbs() == {}
    [shard] = second.shards()
    assert {term.xorb for file in parse_upload(shard).files() for term in file.terms()} <= tables.keys()
