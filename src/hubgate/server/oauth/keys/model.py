"""A signing key and its states: waiting, signing, retiring, retired, revoked."""

from collections.abc import Iterable
from enum import Enum

from msgspec import Struct

from hubgate.server.clock import DAY, HOUR, MINUTE

# Signs ID tokens unless the app chose another algorithm, and all other tokens.
DEFAULT_ALGORITHM = "RS256"
# Verifiers may cache the published set for CACHE_SECONDS, so a new key waits longer than that (LEAD) before it signs.
CACHE_SECONDS = 300
LEAD = 10 * MINUTE
# An ID token lasts an hour; the rest is for verifiers that cache the set longer than allowed.
OVERLAP = DAY + HOUR


class KeyState(Enum):
    WAITING = "waiting"
    SIGNING = "signing"
    RETIRING = "retiring"
    RETIRED = "retired"
    REVOKED = "revoked"


class SigningKey(Struct, frozen=True):
    kid: str
    seq: int
    algorithm: str
    public_jwk: str
    sealed_private: bytes
    created_at: int
    signs_from: int
    published_until: int | None
    revoked_at: int | None

    def is_published(self, now: int) -> bool:
        return self.revoked_at is None and (self.published_until is None or now < self.published_until)


def current_key(keys: Iterable[SigningKey], now: int, algorithm: str = DEFAULT_ALGORITHM) -> SigningKey | None:
    """The key that signs now: the newest published key of the algorithm whose `signs_from` has passed."""
    ready = [key for key in keys if key.algorithm == algorithm and key.is_published(now) and key.signs_from <= now]
    return max(ready, key=lambda key: key.seq, default=None)


def state_of(key: SigningKey, keys: Iterable[SigningKey], now: int) -> KeyState:
    if key.revoked_at is not None:
        return KeyState.REVOKED
    if not key.is_published(now):
        return KeyState.RETIRED
    if key.signs_from > now:
        return KeyState.WAITING
    return KeyState.SIGNING if current_key(keys, now, key.algorithm) == key else KeyState.RETIRING
