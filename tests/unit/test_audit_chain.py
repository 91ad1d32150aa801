"""The format of the audit chain: what is sealed, byte by byte, and that no sealed entry can be changed unnoticed."""

import hashlib
import json
from pathlib import Path
from string import ascii_letters, ascii_lowercase

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hubgate.server.audit.chain import (
    FIRST_PREVIOUS_HASH,
    batch_text,
    canonical_json,
    check_serializable,
    entry_text,
    exact_time,
    find_flaw,
    sealed_batch,
)
from hubgate.server.audit.filters import MAX_TERMS, Filter, Term, parse_filter
from hubgate.server.audit.model import Entry, EntryType
from hubgate.server.errors import Unprocessable

# A busy machine is not a failure. Each example is a whole chain, so half as many suffice.
calmly = settings(
    max_examples=settings.default.max_examples // 2, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(ascii_letters, min_size=1, max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECT = st.none() | st.dictionaries(st.text(ascii_lowercase, min_size=1, max_size=5), PLAIN, max_size=3).map(
    canonical_json
)


@st.composite
def entries(draw: st.DrawFn, least: int = 1) -> list[Entry]:
    count = draw(st.integers(least, 5))
    return [
        Entry(
            id=f"{number:024x}",
            org_id="a" * 24,
            created_at=draw(st.integers(0, 2**52)),
            type=draw(st.sampled_from(["org.create", "oauth.token"])),
            message=draw(TEXT),
            author_id=draw(st.none() | st.just("c" * 24)),
            author_name=draw(TEXT),
            ip=draw(st.none() | TEXT),
            user_agent=draw(st.none() | TEXT),
            data=draw(OBJECT),
            token=draw(OBJECT),
            oauth=draw(OBJECT),
            token_id=None,
            batch=7,
            position=number,
        )
        for number in range(1, count + 1)
    ]


def test_entry_is_sealed_as_documented() -> None:
    entry = Entry(
        id="65" * 12,
        org_id="a" * 24,
        created_at=1_790_000_000_000_042,
        type="org.add_user",
        message='added "bob" as read',
        author_id="c" * 24,
        author_name="ada",
        ip="192.0.2.7",
        user_agent=None,
        data='{"role":"read","user":"bob"}',
        token='{"id":"t","last4":"wxyz","type":"access_token"}',
        oauth=None,
        token_id="t",
    )
    text = (
        '{"_id":"656565656565656565656565","author":{"_id":"cccccccccccccccccccccccc","type":"user","user":"ada"},'
        '"createdAt":"2026-09-21T14:13:20.000042Z","data":{"role":"read","user":"bob"},"ip":"192.0.2.7",'
        '"message":"added \\"bob\\" as read","token":{"id":"t","last4":"wxyz","type":"access_token"},'
        '"type":"org.add_user"}'
    )
    assert entry_text(entry) == text
    assert batch_text("a" * 24, 1, 1_790_000_001_000_000, FIRST_PREVIOUS_HASH, [entry]) == (
        "hubgate audit batch 1\n"
        "organization aaaaaaaaaaaaaaaaaaaaaaaa\n"
        "batch 1\n"
        "sealed 2026-09-21T14:13:21.000000Z\n"
        "entries 1\n"
        f"previous {'0' * 64}\n"
        f"{hashlib.sha256(text.encode()).hexdigest()}\n"
    )


@calmly
@given(entries(), st.binary(min_size=32, max_size=32), st.integers(0, 2**52))
def test_sealed_batch_verifies(sealed: list[Entry], previous: bytes, at: int) -> None:
    batch = sealed_batch("a" * 24, 7, at, previous, sealed)
    assert find_flaw(batch, previous, sealed) is None


@calmly
@given(entries(), st.data())
def test_every_change_is_detected(sealed: list[Entry], data: st.DataObject) -> None:
    batch = sealed_batch("a" * 24, 7, 5, FIRST_PREVIOUS_HASH, sealed)
    at = data.draw(st.integers(0, len(sealed) - 1))
    column = data.draw(
        st.sampled_from(["id", "created_at", "type", "message", "author_id", "author_name", "ip", "user_agent", "data"])
    )
    new = data.draw(st.integers(0, 2**52) if column == "created_at" else OBJECT if column == "data" else TEXT)
    changed = replace(sealed[at], **{column: new})
    assume(entry_text(changed) != entry_text(sealed[at]))
    assert find_flaw(batch, FIRST_PREVIOUS_HASH, [*sealed[:at], changed, *sealed[at + 1 :]]) is not None


@calmly
@given(entries(least=2), st.data())
def test_missing_repeated_and_swapped_entries_are_detected(sealed: list[Entry], data: st.DataObject) -> None:
    batch = sealed_batch("a" * 24, 7, 5, FIRST_PREVIOUS_HASH, sealed)
    at = data.draw(st.integers(0, len(sealed) - 2))
    assert (
        find_flaw(batch, FIRST_PREVIOUS_HASH, sealed[:at] + sealed[at + 1 :])
        == f"lacks entry {at + 1} of {len(sealed)}"
    )
    assert "contains" in (find_flaw(batch, FIRST_PREVIOUS_HASH, [*sealed, sealed[at]]) or "")
    swapped = sealed.copy()
    swapped[at], swapped[at + 1] = (
        replace(swapped[at + 1], position=at + 1),
        replace(swapped[at], position=at + 2),
    )
    assert "was changed" in (find_flaw(batch, FIRST_PREVIOUS_HASH, swapped) or "")


@calmly
@given(entries())
def test_batch_moved_elsewhere_is_detected(sealed: list[Entry]) -> None:
    batch = sealed_batch("a" * 24, 7, 5, FIRST_PREVIOUS_HASH, sealed)
    for moved in (
        replace(batch, org_id="b" * 24),
        replace(batch, seq=8),
        replace(batch, sealed_at=6),
        replace(batch, hash=FIRST_PREVIOUS_HASH),
    ):
        assert find_flaw(moved, FIRST_PREVIOUS_HASH, sealed) is not None
    assert find_flaw(batch, b"\1" * 32, sealed) is not None


def test_values_cannot_shift_between_columns() -> None:
    """Concatenated as text, these two would be the same."""
    honest = Entry("1" * 24, "a" * 24, 5, "t", "m", None, "n", "1.1.1.1", None, '{"a":1}', None, None, None, 7, 1)
    forged = replace(honest, data='{"a":1},"ip":"1.1.1.1"', ip=None)
    batch = sealed_batch("a" * 24, 7, 5, FIRST_PREVIOUS_HASH, [honest])
    assert "was changed" in (find_flaw(batch, FIRST_PREVIOUS_HASH, [forged]) or "")


@pytest.mark.parametrize(
    ("column", "value"),
    [("created_at", "x"), ("created_at", 2**62), ("data", "[" * 100_000), ("data", "nonsense"), ("message", b"\0")],
)
def test_value_of_the_wrong_type_is_detected_as_a_change(column: str, value: object) -> None:
    honest = Entry("1" * 24, "a" * 24, 5, "t", "m", None, "n", None, None, None, None, None, None, 7, 1)
    batch = sealed_batch("a" * 24, 7, 5, FIRST_PREVIOUS_HASH, [honest])
    assert "was changed" in (find_flaw(batch, FIRST_PREVIOUS_HASH, [replace(honest, **{column: value})]) or "")


@calmly
@given(PLAIN)
def test_canonical_json_round_trips_and_is_stable(value: object) -> None:
    check_serializable(value)
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


@pytest.mark.parametrize("value", [1.5, 2**53, {"é": 1}, {1: 2}, {"a": [float("nan")]}, b"x", {"a": {"b": object()}}])
def test_values_without_one_json_form_are_rejected(value: object) -> None:
    with pytest.raises(TypeError):
        check_serializable(value)


@calmly
@given(st.integers(0, 2**52), st.integers(0, 2**52))
def test_times_are_exact_and_ordered(one: int, other: int) -> None:
    assert (exact_time(one) < exact_time(other)) == (one < other)


def test_every_type_is_documented() -> None:
    documented = (Path(__file__).parents[2] / "docs/audit.md").read_text()
    assert [kind.value for kind in EntryType if f"`{kind.value}`" not in documented] == []


def test_filters_are_parsed() -> None:
    assert parse_filter("  Author:Ada type:org.add_user  bob@x:y ip:::1 Author:Ada") == Filter(
        (Term("author", "Ada"), Term("type", "org.add_user"), Term("", "bob@x:y"), Term("ip", "::1"))
    )
    assert str(parse_filter("author:ada  added")) == "author:ada added"
    assert str(parse_filter("author:ada added").without(Term("author", "ada"))) == "added"
    assert parse_filter("") == Filter()
    for refused in ("author:", "x " * 501, " ".join(f"w{n}" for n in range(MAX_TERMS + 1))):
        with pytest.raises(Unprocessable):
            parse_filter(refused)


@given(PLAIN)
def test_canonical_text_is_that_of_sealed_entries(value: object) -> None:
    """Entries were sealed with the standard library's text, byte for byte."""
    assert canonical_json(value) == as_sealed_before(value)


def test_canonical_text_of_every_kind_of_character() -> None:
    characters = [*range(0x3000), 0xE000, 0xFFFD, 0xFFFF, 0x1F600, 0x10FFFF]
    for code in (code for code in characters if not 0xD800 <= code < 0xE000):
        assert canonical_json({"b": chr(code), "a": [1]}) == as_sealed_before({"b": chr(code), "a": [1]})


def as_sealed_before(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
