"""Single-use forms, whose response shows a secret: submitting such a form again, by reloading the page, does nothing.

The form contains a nonce with a MAC, valid for its user for a day. Its use is recorded as a rate-limit bucket, in the
transaction of the form's action: if the same form is submitted twice concurrently, only one succeeds.
"""

import hashlib
import secrets

from msgspec import Struct

from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import User
from hubgate.server.clock import DAY, SECOND
from hubgate.server.errors import Conflict, FieldErrors
from hubgate.server.storage.database import Tx
from hubgate.server.throttle import store

FIELD = "once"
LIFETIME = DAY
_PURPOSE = "form once"


class AlreadyUsed(Conflict):
    """The form was already submitted."""

    def __init__(self) -> None:
        super().__init__("Already created. The secret cannot be shown again.")


class VerifiedNonce(Struct, frozen=True):
    """A verified nonce of a form, to be consumed in the transaction of the form's action."""

    bucket: bytes
    recorded_until: int


def new_nonce(accounts: Accounts, user: User) -> str:
    """A new nonce for the form's hidden field."""
    issued_at = f"{accounts.clock() // SECOND:x}"
    text = f"{issued_at}.{secrets.token_hex(16)}"
    return f"{text}.{accounts.secret.mac(_PURPOSE, _mac_input(user, text)).hex()}"


def check_nonce(accounts: Accounts, user: User, nonce: str) -> VerifiedNonce:
    text, _, mac = nonce.rpartition(".")
    now = accounts.clock()
    try:
        genuine = accounts.secret.mac_matches(_PURPOSE, _mac_input(user, text), bytes.fromhex(mac))
        fresh = genuine and now - int(text.partition(".")[0], 16) * SECOND < LIFETIME
    except ValueError:
        fresh = False
    if not fresh:
        raise FieldErrors({FIELD: "This form has expired. Send it again."})
    # The record outlives the nonce: once the record is deleted, the nonce has expired.
    return VerifiedNonce(hashlib.sha256(_mac_input(user, text)).digest()[:16], now + LIFETIME)


async def consume_nonce(tx: Tx, nonce: VerifiedNonce) -> None:
    """Mark a nonce as used; AlreadyUsed if the form was submitted before."""
    if not await store.claim_bucket(tx, nonce.bucket, nonce.recorded_until):
        raise AlreadyUsed


def _mac_input(user: User, text: str) -> bytes:
    return f"{_PURPOSE}\0{user.id}\0{text}".encode()
