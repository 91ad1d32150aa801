"""E-mail addresses: validation, and the normalized form for storage, uniqueness and sign-in."""

import re
import string
import unicodedata

from hubgate.server.errors import Unprocessable

LONGEST_EMAIL = 254
_LOWER_CASE = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_SHAPE = re.compile(r"[^\s@<>()\[\],;:\"\\\x00-\x1f\x7f]{1,64}@[^\s@<>()\[\],;:\"\\\x00-\x1f\x7f]{1,190}\Z")


def check_email(text: str) -> str:
    """The normalized address: trimmed, ASCII letters in lower case.

    Addresses that NFKC would change are rejected: full-width or ligature letters can impersonate a member (attack O45).
    """
    email = text.strip()
    local, _, host = email.rpartition("@")
    well_formed = len(email) <= LONGEST_EMAIL and _SHAPE.match(email) is not None and email.isprintable()
    misplaced = ".." in email or local[:1] == "." or local[-1:] == "." or host[:1] in ".-" or host[-1:] in ".-"
    # Mail programs would read an encoded word (RFC 2047) as another address.
    if not well_formed or misplaced or "." not in host or "=?" in email:
        raise Unprocessable("This is not an e-mail address.")
    if unicodedata.normalize("NFKC", email) != email:
        raise Unprocessable("This e-mail address contains look-alike characters. Type it with plain characters.")
    return email_key(email)


def email_key(email: str) -> str:
    """The address with only ASCII letters lower-cased: Unicode case rules would make different addresses equal."""
    return email.translate(_LOWER_CASE)
