"""The filter of a list of deliveries: from the query of an address to criteria, and back to addresses and chips."""

from collections.abc import Mapping
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import asdict, replace

from hubgate.server.webhooks.activity import delivery_log
from hubgate.server.webhooks.activity.store import NOT_ANSWERED, DeliveryFilter
from hubgate.server.webhooks.management.validation import InvalidField

_LONGEST_NAME = 200
_NO_ANSWER = "none"
# Values of the field `status`. A status code is accepted too.
ANSWERS = (
    ("", "All answers"),
    ("2xx", "2xx: accepted"),
    ("3xx", "3xx: redirect"),
    ("4xx", "4xx: rejected"),
    ("5xx", "5xx: error"),
    (_NO_ANSWER, "No answer"),
)


class TypedFilter(Struct, frozen=True):
    """The filter as it is in the query, valid or not."""

    state: str = ""
    repo: str = ""
    scope: str = ""
    status: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "TypedFilter":
        return cls(*(query.get(name, "").strip()[:_LONGEST_NAME] for name in cls.__struct_fields__))

    def criteria(self) -> DeliveryFilter:
        """The criteria. Raises with a message for an invalid field."""
        answered = _answered(self.status.lower())
        return delivery_log.check_filter(
            DeliveryFilter(self.state, scope=self.scope, repo_part=self.repo, answered=answered)
        )

    def address(self, path: str, cursor: str | None = None) -> str:
        query = {**asdict(self), "cursor": cursor}
        encoded = urlencode({name: value for name, value in query.items() if value})
        return f"{path}?{encoded}" if encoded else path

    def chips(self, path: str) -> list[tuple[str, str]]:
        """Each part of the filter, and the address without it."""
        words = {**asdict(self), "status": "no answer" if self.status == _NO_ANSWER else self.status}
        return [(text, replace(self, **{name: ""}).address(path)) for name, text in words.items() if text]


def _answered(status: str) -> tuple[int, int] | None:
    if not status:
        return None
    if status == _NO_ANSWER:
        return NOT_ANSWERED
    if len(status) == 3 and status.isascii():
        if status.isdecimal():
            return int(status), int(status)
        if status[0].isdecimal() and status.endswith("xx"):
            return int(status[0]) * 100, int(status[0]) * 100 + 99
    raise InvalidField("status", "Give a status code such as 503, 2xx, 3xx, 4xx, 5xx or none.")
