"""Sealing: a sealed value can be opened only with a configured key, in its own place, undamaged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubgate.server.secret import CannotOpen, ServerSecret

OLD, NEW = "o" * 32, "n" * 32


@given(st.binary(max_size=200), st.text(max_size=20))
def test_sealed_value_can_be_opened(plaintext: bytes, place: str) -> None:
    secret = ServerSecret(OLD)
    assert secret.open(secret.seal(plaintext, place), place) == plaintext


def test_first_key_seals_and_all_keys_open() -> None:
    sealed = ServerSecret(OLD).seal(b"x", "p")
    both = ServerSecret(f"{NEW}, {OLD}")
    assert both.open(sealed, "p") == b"x"
    assert not both.is_sealed_with_first_key(sealed)
    assert both.is_sealed_with_first_key(both.seal(b"x", "p"))
    with pytest.raises(CannotOpen):
        ServerSecret(NEW).open(sealed, "p")


@given(st.integers(min_value=0), st.integers(min_value=1, max_value=255))
def test_changed_byte_is_detected(position: int, change: int) -> None:
    secret = ServerSecret(OLD)
    sealed = bytearray(secret.seal(b"some plaintext", "p"))
    sealed[position % len(sealed)] ^= change
    with pytest.raises(CannotOpen):
        secret.open(bytes(sealed), "p")


@pytest.mark.parametrize("damaged", [b"", b"\x01", b"\x01" * 16, b"\x01" * 40])
def test_unsealed_value_cannot_be_opened(damaged: bytes) -> None:
    with pytest.raises(CannotOpen):
        ServerSecret(OLD).open(damaged, "p")


def test_sealed_value_cannot_be_opened_in_another_place() -> None:
    secret = ServerSecret(OLD)
    with pytest.raises(CannotOpen):
        secret.open(secret.seal(b"x", "webhooks.1"), "webhooks.2")


def test_macs_differ_by_purpose_and_survive_rotation() -> None:
    old, both = ServerSecret(OLD), ServerSecret(f"{NEW},{OLD}")
    assert old.mac("a", b"m") != old.mac("b", b"m")
    assert both.mac_matches("a", b"m", old.mac("a", b"m"))
    assert both.mac("a", b"m") != old.mac("a", b"m")
    assert not both.mac_matches("a", b"m", b"")
