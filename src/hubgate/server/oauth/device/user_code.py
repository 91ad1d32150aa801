"""The user code: eight consonants, so that no code spells a word, shown as XXXX-XXXX."""

from hubgate.server.secret import RandomText, ServerSecret

# No vowels, and no Y: 20 letters, 25 billion codes (RFC 8628, section 6.1).
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_LENGTH = 8
_LONGEST_INPUT = 40
_random_text = RandomText(_LETTERS)
_PURPOSE = "user code"


def new_user_code() -> str:
    letters = _random_text(_LENGTH)
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
