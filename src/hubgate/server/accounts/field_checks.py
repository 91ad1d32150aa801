"""Validation of form fields: all fields of a form together, and the profile fields of users and organizations."""

import unicodedata
from collections.abc import Callable
from urllib.parse import urlsplit

from hubgate.server.errors import FieldErrors, Unprocessable


def check_field(name: str, check: Callable[[str], str], value: str) -> str:
    """Validate a single field and return its checked value."""
    checks = FieldChecks()
    checked = checks.check(name, check, value)
    checks.raise_errors()
    return checked


class FieldChecks:
    """Collects the errors of a form, so that the response names every invalid field."""

    def __init__(self) -> None:
        self._errors: dict[str, str] = {}

    def check(self, name: str, check: Callable[[str], str], value: str) -> str:
        """The checked value, or the unchanged value if it is invalid."""
        try:
            return check(value)
        except Unprocessable as error:
            self._errors[name] = error.message
            return value

    def is_valid(self, name: str) -> bool:
        """Whether no error was found in the field so far."""
        return name not in self._errors

    def add_error(self, name: str, message: str) -> None:
        self._errors[name] = message

    def raise_errors(self) -> None:
        """Raise FieldErrors if any field is invalid."""
        if self._errors:
            raise FieldErrors(self._errors)


# Letters and symbols without a visible form: Hangul fillers and the empty Braille pattern.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def is_visible_text(text: str) -> bool:
    """Whether all characters are printable and at least one is visible: a mark alone (categories M) or a space is not.

    For names and sentences on consent pages, where a blank name would let an app pass for a part of the page.
    """
    return text.isprintable() and any(
        character not in _BLANK and unicodedata.category(character)[0] not in "MZ" for character in text
    )


def check_shown_name(subject: str, value: str, longest: int) -> str:
    """The name of an app or a server as one line. `subject` begins the message, such as "A name"."""
    name = " ".join(value.split())
    if not 1 <= len(name) <= longest or not name.isprintable():
        raise Unprocessable(f"{subject} must have 1 to {longest} printable characters.")
    if not is_visible_text(name):
        raise Unprocessable(f"{subject} must have a visible character.")
    return name


LONGEST_FULLNAME = 96
LONGEST_WEBSITE = 300


def check_fullname(value: str) -> str:
    """The full name as one line. Invisible and bidirectional characters are removed when it is shown."""
    name = " ".join(value.split())
    if len(name) > LONGEST_FULLNAME:
        raise Unprocessable(f"A full name may have at most {LONGEST_FULLNAME} characters.")
    if any(ord(character) < 32 or ord(character) == 127 for character in name):
        raise Unprocessable("A full name cannot contain control characters.")
    return name


def check_website(value: str) -> str:
    """The website address; http and https only, because it becomes a link on the hub's pages."""
    address = value.strip()
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
