"""Hashes of xorbs and files: a tree over the hashes and sizes of their chunks.

Specification: "Hashing: xorb hashes, file hashes". The text leaves the shape of the tree to the reference
implementation (`aggregated_hashes.rs` in huggingface/xet-core): each level is divided from left to right into groups of
at least 2 nodes (the last group may have 1) and at most 9; from the third node on, a group ends after a node whose last
8 bytes, as a little-endian number, are a multiple of 4.
"""

from collections.abc import Iterable

from hubgate.server.hub.xet.hashes import ZERO_HASH, hash_text, keyed_hash, node_hash

_MIN_CUT = 3
_MAX_GROUP = 9
_BRANCHING = 4


class _Level:
    """One level of the tree: the nodes of its last group, and the number of all its nodes so far."""

    def __init__(self) -> None:
        self.group: list[tuple[bytes, int]] = []
        self.count = 0

    def merged(self) -> tuple[bytes, int]:
        """The parent of the group, which becomes empty."""
        lines = "".join(f"{hash_text(value)} : {size}\n" for value, size in self.group)
        size = sum(size for _, size in self.group)
        self.group.clear()
        return node_hash(lines.encode()), size


class ChunkTree:
    """The tree over chunks that are added in order. Its memory grows with the logarithm of their number."""

    def __init__(self) -> None:
        self._levels: list[_Level] = [_Level()]

    def add(self, value: bytes, size: int) -> None:
        """Add the next chunk: its hash and its size in bytes, uncompressed."""
        node, depth = (value, size), 0
        while True:
            if depth == len(self._levels):
                self._levels.append(_Level())
            level = self._levels[depth]
            level.group.append(node)
            level.count += 1
            length = len(level.group)
            # Byte 24 is the lowest of the number, and 4 divides 256.
            if length < _MAX_GROUP and (length < _MIN_CUT or node[0][24] % _BRANCHING):
                return
            node, depth = level.merged(), depth + 1

    def xorb_hash(self) -> bytes:
        """The hash of a xorb with these chunks. Call this or `file_hash` once, after the last chunk."""
        carried: tuple[bytes, int] | None = None
        for level in self._levels:
            if carried is not None:
                level.group.append(carried)
                level.count += 1
            if level.count == 1:
                return level.group[0][0]
            carried = level.merged() if level.group else None
        return carried[0] if carried is not None else ZERO_HASH

    def file_hash(self) -> bytes:
        """The hash of a file with these chunks; zeros for a file without content."""
        if self._levels[0].count == 0:
            return ZERO_HASH
        return keyed_hash(self.xorb_hash(), ZERO_HASH)


def xorb_hash(chunks: Iterable[tuple[bytes, int]]) -> bytes:
    """The hash of a xorb with these chunks, each with its hash and size."""
    return _tree(chunks).xorb_hash()


def file_hash(chunks: Iterable[tuple[bytes, int]]) -> bytes:
    """The hash of a file with these chunks, each with its hash and size."""
    return _tree(chunks).file_hash()


def _tree(chunks: Iterable[tuple[bytes, int]]) -> ChunkTree:
    tree = ChunkTree()
    for value, size in chunks:
        tree.add(value, size)
    return tree
