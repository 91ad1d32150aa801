"""Single-use forms, whose response shows a secret: submitting such a form again, by a reload, does nothing.

The form carries a number with a MAC, valid for its user for a day. Its use is recorded as a rate-limit bucket, in the
transaction of the form's action: if the same form is sent twice concurrently, one wins.
"""

import hashlib
import secrets
from dataclasses import dataclass

from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import User
from hubgate.server.clock import DAY, SECOND
from hubgate.server.errors import Conflict, FieldErrors
from hubgate.server.storage.database import Tx
from hubgate.server.throttle import store

FIELD = "once"
LASTS = DAY
_PURPOSE = "form once"


class AlreadyUsed(Conflict):
    """The form was sent before."""

    def __init__(self) -> None:
        super().__init__("Already created. The secret cannot be shown again.")


@dataclass(frozen=True, slots=True)
class OneUse:
    """A verified form number that has not been used."""

    bucket: bytes
    remembered_until: int


def number_for(accounts: Accounts, user: User) -> str:
    """A new number for the form's hidden field."""
    issued_at = f"{accounts.clock() // SECOND:x}"
    text = f"{issued_at}.{secrets.token_hex(16)}"
    return f"{text}.{accounts.secret.mac(_PURPOSE, _bound(user, text)).hex()}"


def check_number(accounts: Accounts, user: User, number: str) -> OneUse:
    text, _, mac = number.rpartition(".")
    now = accounts.clock()
    try:
        genuine = accounts.secret.mac_matches(_PURPOSE, _bound(user, text), bytes.fromhex(mac))
        fresh = genuine and now - int(text.partition(".")[0], 16) * SECOND < LASTS
    except ValueError:
        fresh = False
    if not fresh:
        raise FieldErrors({FIELD: "This form has expired. Send it again."})
    # Recorded for longer than the number is valid: after that, it is rejected as expired.
    return OneUse(hashlib.sha256(_bound(user, text)).digest()[:16], now + LASTS)


async def use_up(tx: Tx, use: OneUse) -> None:
    if not await store.count_exclusive(tx, use.bucket, use.remembered_until):
        raise AlreadyUsed


def _bound(user: User, text: str) -> bytes:
    return f"{_PURPOSE}\0{user.id}\0{text}".encode()
