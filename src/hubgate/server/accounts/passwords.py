"""Passwords: argon2id, in a thread, and the same work for accounts that do not exist."""

import asyncio
import os

from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from hubgate.server.errors import Unprocessable

SHORTEST = 8
LONGEST = 1024

# OWASP's minimum with one lane: about 36 ms on one core of the reference machine.
_MEMORY_KIB = 19 * 1024
_ITERATIONS = 2
_LANES = 1
# A salt and a hash of zeros, which no password has.
_NOBODYS_HASH = f"$argon2id$v=19$m={_MEMORY_KIB},t={_ITERATIONS},p={_LANES}${'A' * 22}${'A' * 43}"


def check_password(given: str) -> str:
    if not SHORTEST <= len(given) <= LONGEST:
        raise Unprocessable(f"A password has {SHORTEST} to {LONGEST:,} characters.")
    return given


async def hash_password(password: str) -> str:
    return await asyncio.to_thread(_hash, password)


async def password_matches(password: str, stored: str | None) -> bool:
    """Without a stored hash the same work is done in vain, so that time does not tell which accounts exist (O54)."""
    matches = await asyncio.to_thread(_matches, password, stored or _NOBODYS_HASH)
    return matches and stored is not None


def _hash(password: str) -> str:
    kdf = Argon2id(salt=os.urandom(16), length=32, iterations=_ITERATIONS, lanes=_LANES, memory_cost=_MEMORY_KIB)
    return kdf.derive_phc_encoded(password.encode())


def _matches(password: str, stored: str) -> bool:
    try:
        Argon2id.verify_phc_encoded(password.encode(), stored)
    except InvalidKey:
        return False
    return True
