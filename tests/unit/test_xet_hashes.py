"""Hashes of chunks, xorbs and files, against the vectors of the specification and of huggingface/xet-core."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.xet_samples import BOTH_XORBS, CONTENTS, XORB_HASH, decoded

from hubgate.server.hub.xet.hashes import (
    chunk_hash,
    hash_text,
    is_listed_for_lookup,
    keyed_hash,
    node_hash,
    parse_hash,
    range_hash,
)
from hubgate.server.hub.xet.invalid import InvalidXet
from hubgate.server.hub.xet.tree import ChunkTree, file_hash, xorb_hash

# The node with the number n has the hash NODES[n] and the size 100 * n (aggregated_hashes.rs, test_correctness).
NODES = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "cfc5d07f6f03c29bbf424132963fe08d19a37d5757aaf520bf08119f05cd56d6",
    "c3e67584b5c4fc2a89837ec39e40f2c8a6bb0b2987ac94cd4b31e5fbdd210a72",
    "0d2beb91b9196929a5ddec9f6e306924ddf4a24268e3e59fd8464738d525af37",
    "adf8773496a9b7319b2e50dc98093f344053b17d8ad37100b9c07d9805988784",
    "4ac202caf347fc1e9c874b1ef6a1c5e619141eb775a6f43f0f0124ccd0060d9e",
    "b3b28636f65c149ea52eb1f94669466f70f033b54cea792824c696ba6ef3c389",
    "0e2c1a002aae913d2c0fc8ddfa4e9e14b7b311b3b0d458726d5d9f6a6318013c",
]
TREES = [
    (
        [],
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        [0],
        "0000000000000000000000000000000000000000000000000000000000000000",
        "638a6bc391964a85939d48f008e8bdbae6a7975e7ca2d87a3ce2492f4e4d8a4c",
    ),
    (
        [1],
        "cfc5d07f6f03c29bbf424132963fe08d19a37d5757aaf520bf08119f05cd56d6",
        "8e16257caa3fe079d484d872a8975264b2ff683b0d6db9028cc7c0f968a45661",
    ),
    (
        [1, 2, 3],
        "71ec1275fca074724e2dd666921b3277c7cee603e4d025bcab2d4050015be2bc",
        "54e55dccc6653c612bdb5576c5d3cb34bb31bc4e100248abccf4c908b3ef7715",
    ),
    (
        [1] * 4,
        "89f2ada89ff8c96763c6b25010e6dd76a4c05b1466207633ea559acf2093211b",
        "2cdba690d0e09563596e0cda626d43eb4c96ef1e994fe72d9b2f5a83cfcd36dd",
    ),
    (
        [1, 2, 1, 2],
        "90f8313ef12df385d237a067aded02562c35ded12116e32eba401dbc86c38031",
        "284ea045e5a579e99c21ec597c20de1fc0c09e7168162aac00db8f61b3d82dbb",
    ),
    (
        [1, 2, 1, 2, 3, 4],
        "52c826f99507aa05d0b45e9837fa1709e0485425cfbcb1e80db3905cf98b3ee9",
        "91d21684db364c8883ab8209fa5eb2e781cf07f37e1fa43e731c30839afe422f",
    ),
    (
        [0, 1, 0, 1],
        "e1755c85be07fd6b7a8d7becc85e6d8c5f507f2a3d38b316bcb6f97855e72188",
        "207caf24fce045ac6d873b4c6186a5a435d600d103e1ae345e55ddf1f4b7f7ef",
    ),
    (
        [0, 1, 0, 1, 0],
        "f36c6a6374a567efd36ed087aeb680b57e3af4e0b5b8e7be2593df4cb647a2de",
        "ab2f46d31855e1133b3b5b70e78f841394a648710a208923b221c1a8a0572a1f",
    ),
    (
        [1, 0],
        "e8660f81494ca836a58e395c1395ef97870ed71e2b113eec1fab6b3361f46dd6",
        "274d92f7e2acebaa2b8d63c0b5e7a4fc15814a606e3e3825d55609e671bcc5d9",
    ),
    (
        [3, 4, 5, 3],
        "73b9dc802ab03a0855c66823a18d95c2a785af594535756abf405038b6270cb8",
        "c7d5be75ef5ec12888027ad305141e4109e599494477661177475c84e12de48b",
    ),
    (
        [3, 4, 5, 5, 5],
        "2c1fd1eca47e284512fcb40fcf45a1874939f9b91c774d46aeba5d004d9d263d",
        "0799ba7ee2c3fed173a8e8d832cd13970ddc16070ffbc8aa6dcd77476f66dc73",
    ),
    (
        [*range(8)],
        "f62abe77e3fb9c954fe52b0028027ddc90c064c45951a4fd2211d87e5c0011db",
        "d1b068be5bbdb38992269e8efe61f601881e39f7a7585fd76883cc6ea5c23b44",
    ),
    (
        [number % 8 for number in range(64)],
        "6554007c9b5d0a5e7918f79596a1b68815c1407535585435f5735db761f21b88",
        "a8640ab81d48854e00078e12b1ea8be5d90be0ffb5f73a15b7009981d093ddd8",
    ),
    (
        [1] * 32,
        "0a0123c1617921883b7e13902095fcb86676e77c49120c33b233003b0af0e0a6",
        "53af4711fd1d5e5bdc7f931b6be932314d8d673cb16ad2482f6f5222eaf9e63d",
    ),
    (
        [*range(8), 1, 1, 1, 1],
        "e7fc30b73ec9930593f80fe777b334e9d3bb73e45e6a79fa5784b2603446158b",
        "69e1af2fd6023ce133e0d1b90e32d1d42ef79f5a710f2b0accfc3a735e98de9d",
    ),
    (
        [number // 2 for number in range(16)],
        "636c65db520ec16e8166f9ec7a0cf9f74b26369077ac60160ec0221c86bc9f77",
        "6a90ad0d6f5246ac61f1de898c6944c03e14004a1368e6fb23387108c4d039e0",
    ),
]


def test_text_reverses_each_group_of_8_bytes() -> None:
    assert hash_text(bytes(range(32))) == "07060504030201000f0e0d0c0b0a090817161514131211101f1e1d1c1b1a1918"
    raw = bytes.fromhex("16af3a84044b83d6be998a42e20399f2cc5650eaf99950639f50418aece7954e")
    assert hash_text(raw) == "d6834b04843aaf16f29903e2428a99be635099f9ea5056cc4e95e7ec8a41509f"
    assert parse_hash(hash_text(raw)) == raw


@given(st.binary(min_size=32, max_size=32))
def test_every_hash_survives_its_text_form(value: bytes) -> None:
    assert parse_hash(hash_text(value)) == value


@pytest.mark.parametrize(
    "text", ["", "0" * 63, "0" * 65, "A" * 64, "g" * 64, "0" * 64 + "\n", "\u0660" * 64, " " + "0" * 63]
)
def test_malformed_text_is_rejected(text: str) -> None:
    with pytest.raises(InvalidXet, match="64 lowercase hexadecimal digits"):
        parse_hash(text)


@pytest.mark.parametrize(("numbers", "as_xorb", "as_file"), TREES)
def test_trees_match_the_reference(numbers: list[int], as_xorb: str, as_file: str) -> None:
    chunks = [(parse_hash(NODES[number]), 100 * number) for number in numbers]
    assert hash_text(xorb_hash(chunks)) == as_xorb
    assert hash_text(file_hash(chunks)) == as_file


def by_levels(chunks: list[tuple[bytes, int]]) -> bytes:
    """The same tree, level by level with all nodes in memory, as the reference implementation computes it."""
    while len(chunks) > 1:
        parents = []
        while chunks:
            end = min(len(chunks), 9)
            for index in range(2, end):
                if int.from_bytes(chunks[index][0][24:], "little") % 4 == 0:
                    end = index + 1
                    break
            lines = "".join(f"{hash_text(value)} : {size}\n" for value, size in chunks[:end])
            parents.append((node_hash(lines.encode()), sum(size for _, size in chunks[:end])))
            chunks = chunks[end:]
        chunks = parents
    return chunks[0][0]


@pytest.mark.parametrize("count", [*range(1, 40), 81, 100, 729, 1000])
def test_a_tree_is_the_same_chunk_by_chunk(count: int) -> None:
    source = random.Random(count)
    chunks = [(source.randbytes(32), source.randrange(1, 2**17)) for _ in range(count)]
    assert xorb_hash(chunks) == by_levels(chunks)
    never_cut = [(value[:24] + b"\x01" + value[25:], size) for value, size in chunks]
    assert xorb_hash(never_cut) == by_levels(never_cut)
    always_cut = [(value[:24] + b"\x04" + value[25:], size) for value, size in chunks]
    assert xorb_hash(always_cut) == by_levels(always_cut)


def test_a_tree_does_not_store_its_chunks() -> None:
    tree = ChunkTree()
    for number in range(20_000):
        tree.add(chunk_hash(number.to_bytes(4, "little")), 4)
    assert sum(len(level.group) for level in tree._levels) < 100


def test_hashes_match_a_real_upload() -> None:
    """The contents, and the hashes that hf_xet 1.8.0 computed for them (tests/unit/xet_samples.py)."""
    hashes = [chunk_hash(content) for content, _ in CONTENTS]
    assert [
        hash_text(file_hash([(value, len(content))])) for value, (content, _) in zip(hashes, CONTENTS, strict=True)
    ] == [expected for _, expected in CONTENTS]
    sizes = [len(content) for content, _ in CONTENTS]
    assert hash_text(xorb_hash(zip(hashes, sizes, strict=True))) == XORB_HASH
    # The footers of the xorbs, which the hub never reads, have the same hashes.
    for sample in BOTH_XORBS:
        assert b"".join(hashes) in decoded(sample)


def test_range_and_keyed_hashes_depend_on_all_of_their_input() -> None:
    first, second = chunk_hash(b"first"), chunk_hash(b"second")
    assert len({range_hash([first]), range_hash([first, second]), range_hash([second, first]), first, second}) == 5
    assert len({keyed_hash(first, b"k" * 32), keyed_hash(first, b"l" * 32), keyed_hash(second, b"k" * 32)}) == 3


def test_one_chunk_in_1024_is_listed_for_lookup() -> None:
    assert is_listed_for_lookup(b"\xff" * 24 + (1024 * 77).to_bytes(8, "little"))
    assert not is_listed_for_lookup(bytes(24) + (1024 * 77 + 512).to_bytes(8, "little"))
