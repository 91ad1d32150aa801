"""The parameters of a protocol request: each at most once, except those in MAY_REPEAT (attack O17)."""

import json
import re
from collections.abc import Iterable
from typing import Any

from hubgate.server.http.forms import Fields
from hubgate.server.http.request import FORM_TYPE, HubRequest
from hubgate.server.oauth.errors import invalid_request

MAY_REPEAT = frozenset({"resource", "audience", "orgIds"})
_INVALID_CHARACTER = re.compile("[\0\ud800-\udfff]")


class Parameters:
    """Request parameters by name. An empty value counts as absent (RFC 6749, section 3.1)."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)
        for name, values in self._values.items():
            if len(values) > 1 and name not in MAY_REPEAT:
                raise invalid_request(f"{name[:60]} was sent more than once.", name)

    def get(self, name: str) -> str | None:
        values = self._values.get(name)
        return values[0] or None if values else None

    def require(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise invalid_request(f"{name} is missing.", name)
        return value

    def all(self, name: str) -> list[str]:
        return [value for value in self._values.get(name, []) if value]


async def read_body(request: HubRequest) -> Parameters:
    return Parameters(await read_pairs(request))


async def read_pairs(request: HubRequest) -> list[tuple[str, str]]:
    """The name-value pairs of the body in the order sent: a form, or a flat JSON object."""
    if request.content_type == "application/json":
        return list(_flatten(_members(await request.body())))
    if request.content_type != FORM_TYPE:
        raise invalid_request(f"Send the body as {FORM_TYPE} or application/json.")
    fields: Fields = await request.read_form()
    return fields.pairs


def _members(body: bytes) -> Iterable[tuple[str, Any]]:
    """The members of a JSON object, in order and with duplicates, which decoding to a dict would drop silently."""
    try:
        found = json.loads(body.decode(), object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        raise invalid_request("The body is not JSON.") from None
    # Objects are decoded as tuples, arrays as lists.
    if not isinstance(found, tuple):
        raise invalid_request("Send a JSON object.")
    return found


def _flatten(members: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, str]]:
    for name, value in members:
        for item in value if isinstance(value, list) else [value]:
            # Null counts as absent, like an empty value.
            yield _text(name), _text("" if item is None else item)


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise invalid_request("Every member of the body must be a string or a number.")
    text = str(value)
    if _INVALID_CHARACTER.search(text):
        raise invalid_request("A value contains a NUL or a lone surrogate.")
    return text
