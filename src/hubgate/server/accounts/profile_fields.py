"""What people and organizations say about themselves."""

from urllib.parse import urlsplit

from hubgate.server.errors import Unprocessable

LONGEST_FULLNAME = 96
LONGEST_WEBSITE = 300


def check_fullname(given: str) -> str:
    """One line. What could turn the text around or hide in it is taken out where it is shown."""
    name = " ".join(given.split())
    if len(name) > LONGEST_FULLNAME:
        raise Unprocessable(f"A full name has at most {LONGEST_FULLNAME} characters.")
    if any(ord(character) < 32 or ord(character) == 127 for character in name):
        raise Unprocessable("A full name holds no control characters.")
    return name


def check_website(given: str) -> str:
    """Only http and https: the address becomes a link on our pages."""
    address = given.strip()
    if not address:
        return ""
    try:
        parts = urlsplit(address)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        fine = False
    if not fine or len(address) > LONGEST_WEBSITE or any(ord(c) <= 32 or c in '<>"\\' for c in address):
        raise Unprocessable("A website is an address such as https://example.org.")
    return address
