"""The options of webhooks. The API, the form, the audit log and the SQL statements are derived from this table.

A new option needs a row here, a column in `storage/schema/webhooks.py`, a migration, and a field in the client's
`models.py`, from which the flag of the command line is derived.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

OptionValue = bool | int | str


class Option(Struct, frozen=True):
    # The column, and the key in `Webhook.options`.
    name: str
    # bool, int or str.
    type: type[OptionValue]
    default: OptionValue
    # The text of the field in the form.
    label: str
    hint: str
    # Returns an error message for a value, or an empty string if the value is valid.
    problem: Callable[[Any], str] = lambda _: ""
    # Whether the audit log of an organization names the option when it changes.
    audited: bool = True

    @property
    def wire(self) -> str:
        """The name in JSON and in the form: `name` in camel case."""
        first, *rest = self.name.split("_")
        return first + "".join(map(str.capitalize, rest))

    @property
    def is_flag(self) -> bool:
        return self.type is bool

    def parse(self, text: str) -> OptionValue:
        """The value of a form field. Raises ValueError if the text is not a value of the type."""
        return text == "on" if self.is_flag else self.type(text)

    def text(self, value: OptionValue) -> str:
        """The inverse of `parse`."""
        return ("on" if value else "") if self.is_flag else str(value)


OPTIONS = (
    Option(
        "ordered",
        bool,
        default=False,
        label="Deliver in order (wait for retries)",
        hint="After a failed delivery, later ones of the same repo wait for its retry, up to 5 minutes.",
    ),
)


def default_options() -> Mapping[str, OptionValue]:
    return {option.name: option.default for option in OPTIONS}
