"""Hashes of the Xet protocol and their text form.

Specification: "Hashing" (chunk hashes, term verification hashes), "CAS API: Converting hashes to strings",
"Deduplication: HMAC protection". Hashes of xorbs and files are in `tree`.

A hash is 32 bytes. Its text is not the plain hexadecimal form: each group of 8 bytes is one little-endian number, so
the bytes of each group are reversed. The SHA-256 in a shard is stored the other way round: its *text* is the plain
hexadecimal SHA-256, and its bytes are therefore reversed in groups of 8.
"""

import re
from collections.abc import Iterable

from blake3 import blake3

from hubgate.server.hub.xet.invalid import InvalidXet

HASH_SIZE = 32
# The hash of a file without content, and the key of a file hash. No chunk or xorb has it.
ZERO_HASH = bytes(HASH_SIZE)
# Ends a section of a shard. No file or xorb has it.
BOOKEND_HASH = b"\xff" * HASH_SIZE

_CHUNK_KEY = bytes.fromhex("6697f5775b9550de3135cbaca597181c9de421109beb2b58b4d0b04b93adf229")
_NODE_KEY = bytes.fromhex("017ec5c7a5472996fd946666b48a02e65ddd536f37c76dd2f86352e64a53713f")
_RANGE_KEY = bytes.fromhex("7f1857d6ce56ed66127ff913e7a5c3f3a4cd26d5b5db49e64124987f28fb94c3")
_TEXT = re.compile(r"[0-9a-f]{64}\Z")
# One chunk in this many is listed for look-ups, beside the first chunk of each file.
_LOOKUP_MODULUS = 1024


def chunk_hash(content: bytes | memoryview) -> bytes:
    return blake3(content, key=_CHUNK_KEY).digest()


def node_hash(lines: bytes) -> bytes:
    """The hash of an inner node of a tree; `tree` writes the lines."""
    return blake3(lines, key=_NODE_KEY).digest()


def range_hash(hashes: Iterable[bytes]) -> bytes:
    """The hash by which a client proves that it knows the chunks of a term, in their order."""
    return blake3(b"".join(hashes), key=_RANGE_KEY).digest()


def keyed_hash(original: bytes, key: bytes) -> bytes:
    """A hash that only somebody who knows the original can recognize. File hashes use a key of zeros."""
    return blake3(original, key=key).digest()


def hash_text(value: bytes) -> str:
    """The text form of a hash, as in URLs and JSON."""
    return (value[7::-1] + value[15:7:-1] + value[23:15:-1] + value[31:23:-1]).hex()


def parse_hash(text: str) -> bytes:
    """The hash with this text form."""
    if _TEXT.match(text) is None:
        raise InvalidXet("A Xet hash has 64 lowercase hexadecimal digits.")
    value = bytes.fromhex(text)
    return value[7::-1] + value[15:7:-1] + value[23:15:-1] + value[31:23:-1]


def is_listed_for_lookup(value: bytes) -> bool:
    """Whether clients look this chunk up even if it is not the first of a file."""
    return int.from_bytes(value[24:], "little") % _LOOKUP_MODULUS == 0
