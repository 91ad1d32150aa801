"""Sets of chunks of a xorb, as ranges. A file covers the chunks that its terms name, not the whole xorb.

A user who may read a file may refer to the chunks that it covers. The other chunks of the same xorb may be of a private
repo: a user's uploads to a private and to a public repo share xorbs if they share content.
"""

import struct
from collections.abc import Iterable, Sequence

from hubgate.server.hub.xet.xorb_table import XorbTable

# A range of chunks, which excludes its end.
Range = tuple[int, int]
_RANGE = struct.Struct("<II")


def merged(ranges: Iterable[Range]) -> list[Range]:
    """The same chunks in ascending order, without overlaps."""
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def covers(ranges: Sequence[Range], start: int, end: int) -> bool:
    """Whether one of the merged ranges includes all these chunks."""
    return any(first <= start and end <= last for first, last in ranges)


def pack(ranges: Iterable[Range]) -> bytes:
    return b"".join(_RANGE.pack(*item) for item in merged(ranges))


def unpack(packed: bytes) -> list[Range]:
    return [(start, end) for start, end in _RANGE.iter_unpack(packed)]


def only_covered(table: XorbTable, ranges: Sequence[Range], filler: bytes) -> XorbTable:
    """The table up to the last covered chunk. The others have the hash `filler`, which is that of no chunk, and one
    byte: not even their sizes are shown.
    """
    rows = []
    for index in range(ranges[-1][1] if ranges else 0):
        if covers(ranges, index, index + 1):
            first, end = table.stored_between(index, index + 1)
            rows.append((table.hash_of(index), end - first, table.size_of(index)))
        else:
            rows.append((filler, 1, 1))
    return XorbTable(rows)
