"""The user code: eight consonants, so that no code spells a word, shown as XXXX-XXXX."""

import secrets

from hubgate.server.secret import ServerSecret

# No vowels, and no Y: 20 letters, 25 billion codes (RFC 8628, section 6.1).
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_LENGTH = 8
_PLACES = tuple(len(_LETTERS) ** exponent for exponent in range(_LENGTH))
_LONGEST_INPUT = 40
_PURPOSE = "user code"


def new_user_code() -> str:
    # One number, because each call asks the system for random bytes.
    number = secrets.randbelow(len(_LETTERS) ** _LENGTH)
    letters = "".join(_LETTERS[number // place % len(_LETTERS)] for place in _PLACES)
    return f"{letters[:4]}-{letters[4:]}"


def read_user_code(typed: str) -> str | None:
    """Normalize typed input, ignoring case, dashes and spaces; None if it cannot be a user code."""
    letters = "".join(filter(str.isalnum, typed[:_LONGEST_INPUT].upper()))
    if len(letters) != _LENGTH or not set(letters) <= set(_LETTERS):
        return None
    return f"{letters[:4]}-{letters[4:]}"


def user_code_mac(user_code: str, secret: ServerSecret) -> bytes:
    """The MAC that is stored for a user code.

    Not a plain hash: with a stolen database, all 25 billion codes could be tried in a minute (attack O62).
    """
    return secret.mac(_PURPOSE, user_code.encode())


def possible_macs(user_code: str, secret: ServerSecret) -> list[bytes]:
    """The MACs of a user code under each configured secret."""
    return secret.macs(_PURPOSE, user_code.encode())
