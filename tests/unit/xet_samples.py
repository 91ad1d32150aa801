"""A real upload, and helpers that build xorbs and shards for tests of the Xet formats.

The samples were written by hf_xet 1.8.0 into a folder (its endpoint `local://`), once for each compression of xorbs.
The shard is as this client stores it: with a footer, and with an empty file beside the three of `CONTENTS`.
"""

import base64
import struct
from collections.abc import Iterable, Sequence

from hubgate.server.hub.xet.chunk_format import encode_chunk
from hubgate.server.hub.xet.compression import Scheme
from hubgate.server.hub.xet.hashes import chunk_hash
from hubgate.server.hub.xet.shard import Term
from hubgate.server.hub.xet.shard_writer import NewFile
from hubgate.server.hub.xet.tree import file_hash, xorb_hash
from hubgate.server.hub.xet.xorb_table import XorbTable

# Each content, of one chunk, and its hash as a file. The size of the first is not a multiple of four.
CONTENTS = [
    (
        struct.pack("<90I", *(2**30 + number * number for number in range(90))) + b"xyz",
        "b5f79b23ee5a9b92ba30aaa3983c5dc96b81c49cdfa7edb94932a7ff3c19a006",
    ),
    (b"hello\n", "fbf3242e7f6725a9dc46e5030d43ca9dd5265dd3690ccd1b1b8dcbdee88cb81b"),
    (b"the same line again\n" * 20, "5e8c13cb5a7d5ef5a894281808a83d074e3cf6c9f94a9f4359d582890d109718"),
]
XORB_HASH = "0d3db2d5847cf0cd0fb9a469b69a2cc182a36ebcc77645eb458425a2e2f291e3"

LZ4_XORB = """
AGsBAABrAQAAAABAAQAAQAQAAEAJAABAEAAAQBkAAEAkAABAMQAAQEAAAEBRAABAZAAAQHkAAECQAABAqQAAQMQAAEDhAABAAAEAQCEBAEBEAQBAaQEA
QJABAEC5AQBA5AEAQBECAEBAAgBAcQIAQKQCAEDZAgBAEAMAQEkDAECEAwBAwQMAQAAEAEBBBABAhAQAQMkEAEAQBQBAWQUAQKQFAEDxBQBAQAYAQJEG
AEDkBgBAOQcAQJAHAEDpBwBARAgAQKEIAEAACQBAYQkAQMQJAEApCgBAkAoAQPkKAEBkCwBA0QsAQEAMAECxDABAJA0AQJkNAEAQDgBAiQ4AQAQPAECB
DwBAABAAQIEQAEAEEQBAiREAQBASAECZEgBAJBMAQLETAEBAFABA0RQAQGQVAED5FQBAkBYAQCkXAEDEFwBAYRgAQAAZAEChGQBARBoAQOkaAECQGwBA
ORwAQOQcAECRHQBAQB4AQPEeAEB4eXoABgAAAAYAAGhlbGxvCgAwAAABkAEABCJNGGBAgiEAAAD/BXRoZSBzYW1lIGxpbmUgYWdhaW4KFAD/ZGBhZ2Fp
bgoAAAAAWEVUQkxPQgHN8HyE1bI9DcEsmrZppLkP60V2x7xuo4LjkfLioiWERVhCTEJIU0gAAwAAAIzzeCHnaeBgEn+6Y+zTokG7gKyz+wUIKj8E/RDu
o95EKE8FXdcnkPdfGu797sQ9QaxRP+x7U2MN6/g9rlLmEqBLc54SJ0/8+FRMUOoEStVOSb84r1O6H/7NnzaxVA7xL1hCTEJCTkQBAwAAAHMBAACBAQAA
uQEAAGsBAABxAQAAAQMAAAMAAACsAAAAQAAAAAAAAAAAAAAAAAAAAAAAAADUAAAA
"""
GROUPED_XORB = """
AM0AAAJrAQAEIk0YYECCvgAAAPpOAAEECRAZJDFAUWR5kKnE4QAhRGmQueQRQHGk2RBJhMEAQYTJEFmk8UCR5DmQ6UShAGHEKZD5ZNFAsSSZEIkEgQCB
BIkQmSSxQNFk+ZApxGEAoUTpkDnkkUDxeAAAAgASAQEA+jUCAgICAgMDAwMEBAQEBQUFBQYGBgcHBwgICQkJCgoKCwsMDA0NDg4PDxAQERESEhMTFBQV
FRYXFxgZGRoaGxwcHR4eeVkADwIAOS96QAEAQGBAQEBAQEAAAAAAAAYAAAAGAABoZWxsbwoAOgAAApABAAQiTRhgQIIrAAAAX3RzIGVhBQBMX2hhbCBp
BQBMX2VtaWFuBQBMXyBlbmcKBQBGYAogZW5nCgAAAABYRVRCTE9CAc3wfITVsj0NwSyatmmkuQ/rRXbHvG6jguOR8uKiJYRFWEJMQkhTSAADAAAAjPN4
Iedp4GASf7pj7NOiQbuArLP7BQgqPwT9EO6j3kQoTwVd1yeQ918a7v3uxD1BrFE/7HtTYw3r+D2uUuYSoEtznhInT/z4VExQ6gRK1U5JvzivU7of/s2f
NrFUDvEvWEJMQkJORAEDAAAA1QAAAOMAAAAlAQAAawEAAHEBAAABAwAAAwAAAKwAAABAAAAAAAAAAAAAAAAAAAAAAAAAANQAAAA=
"""
BOTH_XORBS = [LZ4_XORB, GROUPED_XORB]
SHARD = """
SEZSZXBvTWV0YURhdGEAVWlnRWp7gVeDpb3ZXM3RSqkCAAAAAAAAAMgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAADAAAAA
AAAAAAAAAAAAFBz8mELEsOMkuW+ZyPT7mkyTm2TkQa4nVbhSeBuZlaQAAAAAAAAAAAAAAAAAAAAA9V59WssTjF4HPagIGCiUqEOfSvnJ9jxOGJcQDYmC
1VkAAADAAQAAAAAAAAAAAAAAzfB8hNWyPQ3BLJq2aaS5D+tFdse8bqOC45Hy4qIlhEUAAAAAkAEAAAIAAAADAAAA2etXSb45UjIS/NEvoZifx937nVq+
2dZw9kg8iCtFEO4AAAAAAAAAAAAAAAAAAAAAVEWHcIUyiBLeUprrd4joOVCZ155PeUh6G+Bvf+dofTEAAAAAAAAAAAAAAAAAAAAAkpta7iOb97XJXTyY
o6owurntp9+cxIFrBqAZPP+nMkkAAADAAQAAAAAAAAAAAAAAzfB8hNWyPQ3BLJq2aaS5D+tFdse8bqOC45Hy4qIlhEUAAAAAawEAAAAAAAABAAAAJBy9
d1CO9MzLO48VLs9jLyAEBsFbI0TLoV1goBXFR3MAAAAAAAAAAAAAAAAAAAAA6K6rS/RgTCdznLu3BQkRFJotTQ96W7xxU12ZXqVsgfAAAAAAAAAAAAAA
AAAAAAAAqSVnfy4k8/udykMNA+VG3BvNDGnTXSbVG7iM6N7LjRsAAADAAQAAAAAAAAAAAAAAzfB8hNWyPQ3BLJq2aaS5D+tFdse8bqOC45Hy4qIlhEUA
AAAABgAAAAEAAAACAAAAJkA1esyqHCNN8Q0Dj4rSx3TYUwZNYnny15uHePtq9tkAAAAAAAAAAAAAAAAAAAAACN/VIrW1kVjS2fsQsfAPbdA0r2Nx/LQb
A772RuiihoIAAAAAAAAAAAAAAAAAAAAA//////////////////////////////////////////8AAAAAAAAAAAAAAAAAAAAAzfB8hNWyPQ3BLJq2aaS5
D+tFdse8bqOC45Hy4qIlhEUAAAAAAwAAAAEDAAAAAAAAjPN4Iedp4GASf7pj7NOiQbuArLP7BQgqPwT9EO6j3kQAAAAAawEAAAAAAIAAAAAAKE8FXdcn
kPdfGu797sQ9QaxRP+x7U2MN6/g9rlLmEqBrAQAABgAAAAAAAIAAAAAAS3OeEidP/PhUTFDqBErVTkm/OK9Tuh/+zZ82sVQO8S9xAQAAkAEAAAAAAIAA
AAAA//////////////////////////////////////////8AAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAwAAAAAAAAAAADAAAAAAAA8AMAAAAAAAAAAAAA
AAAAAPADAAAAAAAAAAAAAAAAAADwAwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABAwAAAAAAAAEDAAAAAAAA8AMAAAAAAAA=
"""


def decoded(sample: str) -> bytes:
    return base64.b64decode("".join(sample.split()))


def xorb_of(contents: Iterable[bytes], scheme: Scheme = Scheme.LZ4) -> tuple[bytes, bytes, XorbTable]:
    """The hash, the bytes and the table of a xorb with these chunks."""
    chunks = [(content, encode_chunk(content, scheme)) for content in contents]
    table = XorbTable((chunk_hash(content), len(stored), len(content)) for content, stored in chunks)
    return xorb_hash(table), b"".join(stored for _, stored in chunks), table


def file_of(
    ranges: Sequence[tuple[bytes, XorbTable, int, int]], sha256: str | None = "ab" * 32, verified: bool = True
) -> NewFile:
    """A file of these ranges of chunks, each with the hash and the table of its xorb."""
    terms = [Term(value, start, end, table.size_between(start, end)) for value, table, start, end in ranges]
    chunks = [chunk for _, table, start, end in ranges for chunk in list(table)[start:end]]
    hashes = [table.range_hash(start, end) for _, table, start, end in ranges]
    return NewFile(file_hash(chunks), terms, hashes if verified else None, sha256)
