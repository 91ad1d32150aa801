"""Validates the fields of a form together, so that the response names every invalid field."""

from collections.abc import Callable

from hubgate.server.errors import FieldErrors, Unprocessable


def check_field(name: str, check: Callable[[str], str], given: str) -> str:
    """Validate a single field and return its checked value."""
    checking = FieldChecks()
    checked = checking.field(name, check, given)
    checking.done()
    return checked


class FieldChecks:
    def __init__(self) -> None:
        self._errors: dict[str, str] = {}

    def field(self, name: str, check: Callable[[str], str], given: str) -> str:
        """The checked value, or the given value if it is invalid."""
        try:
            return check(given)
        except Unprocessable as error:
            self._errors[name] = error.message
            return given

    def accepts(self, name: str) -> bool:
        """Whether no error was found in the field so far."""
        return name not in self._errors

    def refuse(self, name: str, sentence: str) -> None:
        self._errors[name] = sentence

    def done(self) -> None:
        if self._errors:
            raise FieldErrors(self._errors)
