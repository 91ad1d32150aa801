"""Validates the profile fields of users and organizations: full name and website."""

from urllib.parse import urlsplit

from hubgate.server.errors import Unprocessable

LONGEST_FULLNAME = 96
LONGEST_WEBSITE = 300


def check_fullname(given: str) -> str:
    """The full name as one line. Invisible and bidirectional characters are removed when it is shown."""
    name = " ".join(given.split())
    if len(name) > LONGEST_FULLNAME:
        raise Unprocessable(f"A full name has at most {LONGEST_FULLNAME} characters.")
    if any(ord(character) < 32 or ord(character) == 127 for character in name):
        raise Unprocessable("A full name holds no control characters.")
    return name


def check_website(given: str) -> str:
    """The website address; http and https only, because it becomes a link on the hub's pages."""
    address = given.strip()
    if not address:
        return ""
    try:
        parts = urlsplit(address)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        is_valid = False
    if not is_valid or len(address) > LONGEST_WEBSITE or any(ord(c) <= 32 or c in '<>"\\' for c in address):
        raise Unprocessable("A website is an address such as https://example.org.")
    return address
