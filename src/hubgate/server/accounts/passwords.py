"""Passwords: hashing with argon2id in a thread, and asking for the password again before sensitive actions."""

import asyncio
import os
from weakref import WeakKeyDictionary

from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.limits import FAILED_SIGN_INS_OF_ACCOUNT
from hubgate.server.accounts.model import User
from hubgate.server.errors import FieldErrors, Unprocessable
from hubgate.server.storage.database import Tx

SHORTEST_PASSWORD = 8
LONGEST_PASSWORD = 1024

# OWASP's minimum with one lane: about 36 ms on one core.
_MEMORY_KIB = 19 * 1024
_ITERATIONS = 2
_LANES = 1
# A dummy hash: salt and hash are zeros, which no password produces.
_DUMMY_HASH = f"$argon2id$v=19$m={_MEMORY_KIB},t={_ITERATIONS},p={_LANES}${'A' * 22}${'A' * 43}"


# Each comparison uses 19 MiB and a core, and its attempt counts as a failure until the password is known to match.
# Without this limit, many concurrent sign-ins with the right password would exceed the rate limit on failures, and
# guesses could exhaust the machine.
_CONCURRENT_HASHES = 4
_semaphores: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]" = WeakKeyDictionary()


def hashing_slot() -> asyncio.Semaphore:
    """The semaphore to hold from counting an attempt until its result is known."""
    loop = asyncio.get_running_loop()
    if loop not in _semaphores:
        _semaphores[loop] = asyncio.Semaphore(_CONCURRENT_HASHES)
    return _semaphores[loop]


def check_password(password: str) -> str:
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise Unprocessable(f"A password must have {SHORTEST_PASSWORD} to {LONGEST_PASSWORD:,} characters.")
    return password


async def hash_password(password: str) -> str:
    return await asyncio.to_thread(_hash, password)


async def password_matches(password: str, stored: str | None) -> bool:
    """Whether a password matches. Without a stored hash a dummy hash is compared, so that timing does not reveal
    which accounts exist (attack O54)."""
    matches = await asyncio.to_thread(_matches, password, stored or _DUMMY_HASH)
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


WRONG_PASSWORD = "Wrong password."  # noqa: S105


async def require_password(accounts: Accounts, user: User, field: str, password: str) -> str:
    """Check the password from the form field `field`, and return the stored hash. Failures count as failed sign-ins
    (attack O54).

    The password may change while it is compared: pass the hash to `lock_password`.
    """
    async with hashing_slot():
        hit = await accounts.limiter.take(FAILED_SIGN_INS_OF_ACCOUNT, user.id)
        stored = await store.password_hash(accounts.db, user.id)
        if not await password_matches(password, stored) or stored is None:
            raise FieldErrors({field: WRONG_PASSWORD})
        await accounts.limiter.refund(hit)
    return stored


async def lock_password(tx: Tx, user: User, field: str, known_hash: str) -> None:
    """Lock the password in the transaction of the action that required it; FieldErrors if it has changed or the account
    was disabled. A request in flight must not let an intruder back in after a reset or after the account was
    disabled."""
    if not await store.lock_password(tx, user.id, known_hash):
        raise FieldErrors({field: WRONG_PASSWORD})
