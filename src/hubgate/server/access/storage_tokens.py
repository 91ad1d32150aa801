"""Tokens for the storage API (Xet): valid for minutes, for one repo, one revision, and for reading or writing.

A token is sealed and names the credential that requested it. At every use the credential is looked up and the
permission of its caller is checked again, so a token never outlives a revoked credential or a lost role (attack O44),
and it never permits more than its credential does.
"""

import base64
import binascii

import msgspec

from hubgate.server.accounts.tokens.text import TokenKind
from hubgate.server.clock import MINUTE
from hubgate.server.errors import Unauthorized
from hubgate.server.secret import CannotOpen, ServerSecret

# Clients request a new token a minute before the expiry.
VALIDITY = 15 * MINUTE
_PREFIX = "xet_"
_LOCATION = "storage token"
_LONGEST = 8192

_INVALID = "This storage token is not valid. Request a new one at the repo's xet-read-token or xet-write-token."


class StorageToken(msgspec.Struct, frozen=True, array_like=True):
    repo_id: str
    # As in the address that the token was requested from.
    rev: str
    may_write: bool
    # The commit will create a pull request.
    as_pull_request: bool
    expires_at: int
    # The kind and primary key of the credential; None for an anonymous visitor.
    credential: tuple[TokenKind, bytes] | None

    def text(self, secret: ServerSecret) -> str:
        sealed = secret.seal(msgspec.msgpack.encode(self), _LOCATION)
        return _PREFIX + base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def invalid_storage_token() -> Unauthorized:
    return Unauthorized(_INVALID, challenge='Bearer error="invalid_token"')


def read_storage_token(text: str, secret: ServerSecret, now: int) -> StorageToken:
    """Open a token; Unauthorized if it was altered or has expired."""
    if not text.startswith(_PREFIX) or len(text) > _LONGEST:
        raise invalid_storage_token()
    body = text.removeprefix(_PREFIX)
    try:
        sealed = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        token = msgspec.msgpack.decode(secret.open(sealed, _LOCATION), type=StorageToken)
    except (binascii.Error, ValueError, CannotOpen, msgspec.MsgspecError):
        raise invalid_storage_token() from None
    if now >= token.expires_at:
        raise invalid_storage_token()
    return token
