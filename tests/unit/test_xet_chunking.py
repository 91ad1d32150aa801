"""Content-defined chunking, against the boundaries that huggingface/xet-core publishes (chunking.rs)."""

import random
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubgate.server.hub.xet.chunking import MAX_CHUNK, MIN_CHUNK, chunks
from hubgate.server.hub.xet.gear_table import GEAR_TABLE

# Contains one boundary, and another wherever it is repeated.
PATTERN = bytes.fromhex(
    "9a342a229f4b7ee046ec0cc44fecb27c7f3263b22cb0ae7efaebcdaefc7a230a1465d645c10873699ee4786f88a2c6fbd3b7fdfca4933f10"
    "baa27517aa24cdbbae4cd2aed3af0cad913b0246deb59fe3b69cbd33e26a1832b79d8c0a0817d4460aea1721dbfe27ec4631bf7409730f65"
    "1a9fa5dc0faa387d5ca35eeb26283151"
)


def boundaries(content: bytes, part: int = 1 << 20) -> list[int]:
    parts = [content[start : start + part] for start in range(0, len(content), part)]
    return list(accumulate(len(chunk) for chunk in chunks(parts)))


def splitmix(size: int, seed: int) -> bytes:
    """Reproducible content, by the generator that the published boundaries are for."""
    mask, words = (1 << 64) - 1, []
    for _ in range(-(-size // 8)):
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        word = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & mask
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
        words.append((word ^ (word >> 31)).to_bytes(8, "little"))
    return b"".join(words)[:size]


def repeated(padding: int) -> bytes:
    """64 KiB of the pattern with `padding` zeros, by doubling as the reference does."""
    content = PATTERN + bytes(padding)
    while len(content) < 65536:
        content += content[: 65536 - len(content)]
    return content


def test_the_table_has_a_number_for_each_byte() -> None:
    assert len(set(GEAR_TABLE)) == 256
    assert (GEAR_TABLE[0], GEAR_TABLE[255]) == (0xB088D3A9E840F559, 0x63C7A906C1DD187B)


def test_random_content_matches_the_reference() -> None:
    content = splitmix(1_000_000, 0)
    assert (content[0], content[127], content[111111]) == (175, 132, 118)
    # fmt: off
    assert boundaries(content) == [
        84493, 134421, 144853, 243318, 271793, 336457, 467529, 494581, 582000, 596735, 616815, 653164, 678202, 724510,
        815591, 827760, 958832, 991092, 1000000,
    ]
    # fmt: on


def test_content_without_boundaries_is_divided_at_the_maximum() -> None:
    assert boundaries(b"\x3b" * 1_000_000) == [131072, 262144, 393216, 524288, 655360, 786432, 917504, 1000000]


@pytest.mark.parametrize(
    ("padding", "expected"),
    [
        (0, [8256, 16448, 24640, 32832, 41024, 49216, 57408, 65536]),
        (1, [8320, 16576, 24832, 33088, 41344, 49600, 57856, 65536]),
        (2, [8254, 16574, 24894, 33214, 41534, 49854, 58174, 65536]),
        (10, [8206, 16486, 24766, 33046, 41326, 49606, 57886, 65536]),
        (16, [8272, 16480, 24688, 32896, 41104, 49312, 57520, 65536]),
        (126, [8192, 16574, 24956, 33338, 41720, 50102, 58484, 65536]),
        (127, [8224, 16639, 25054, 33469, 41884, 50299, 58714, 65536]),
    ],
)
def test_boundaries_near_the_minimum_match_the_reference(padding: int, expected: list[int]) -> None:
    assert boundaries(repeated(padding)) == expected


@pytest.mark.parametrize("part", [1, 37, 255, 8192, 131072, 131073])
def test_boundaries_do_not_depend_on_how_the_content_is_read(part: int) -> None:
    content = splitmix(300_000, 1)
    assert boundaries(content, part) == boundaries(content)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(0, 400_000))
def test_chunks_are_the_content_in_allowed_sizes(seed: int, size: int) -> None:
    content = random.Random(seed).randbytes(size)
    found = list(chunks([content]))
    assert b"".join(found) == content
    assert all(MIN_CHUNK <= len(chunk) <= MAX_CHUNK for chunk in found[:-1])
    assert all(0 < len(chunk) <= MAX_CHUNK for chunk in found)


def test_an_insertion_changes_only_the_chunks_around_it() -> None:
    content = splitmix(1_000_000, 3)
    changed = content[:400_000] + b"inserted" + content[400_000:]
    before, after = list(chunks([content])), list(chunks([changed]))
    assert before[:4] == after[:4]
    assert before[-4:] == after[-4:]
    assert len(set(before) & set(after)) > len(before) / 2


def test_empty_content_has_no_chunks() -> None:
    assert list(chunks([])) == list(chunks([b"", b""])) == []
