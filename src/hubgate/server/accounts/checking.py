"""Checking the fields of a form together, so that the answer names every one that has to be mended."""

from collections.abc import Callable

from hubgate.server.errors import FieldErrors, Unprocessable


def check_field(name: str, check: Callable[[str], str], given: str) -> str:
    """The checked value, where there is but one field to check."""
    checking = Checking()
    checked = checking.field(name, check, given)
    checking.done()
    return checked


class Checking:
    def __init__(self) -> None:
        self._errors: dict[str, str] = {}

    def field(self, name: str, check: Callable[[str], str], given: str) -> str:
        """The checked value, or what was given if it has to be mended."""
        try:
            return check(given)
        except Unprocessable as error:
            self._errors[name] = error.message
            return given

    def refuse(self, name: str, sentence: str) -> None:
        self._errors[name] = sentence

    def done(self) -> None:
        if self._errors:
            raise FieldErrors(self._errors)
