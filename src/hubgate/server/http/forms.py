"""A strict parser for urlencoded fields: attackers exploit input that lenient parsers repair.

Rejects invalid UTF-8, NUL bytes, more than 1,000 fields and, where a single value is read, a name sent twice (two
layers that pick different values would disagree about what was signed or consented to).
"""

from urllib.parse import unquote_to_bytes

from hubgate.server.errors import BadRequest

MAX_FIELDS = 1000


class Fields:
    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs

    def get(self, name: str, default: str = "") -> str:
        """The single value of a field."""
        values = self.all(name)
        if len(values) > 1:
            raise _repeated(name)
        return values[0] if values else default

    def all(self, name: str) -> list[str]:
        """Every value of a field that may repeat."""
        return [value for key, value in self.pairs if key == name]

    def to_dict(self) -> dict[str, str]:
        """All fields by name; a repeated field is rejected."""
        found: dict[str, str] = {}
        for name, value in self.pairs:
            if name in found:
                raise _repeated(name)
            found[name] = value
        return found


def _repeated(name: str) -> BadRequest:
    return BadRequest(f"{name[:60]} was sent more than once.")


def parse_fields(body: bytes, limit: int = MAX_FIELDS) -> Fields:
    if body.count(b"&") >= limit:
        raise BadRequest(f"More than {limit} fields were sent.")
    pairs = []
    for part in body.split(b"&"):
        if part:
            name, _, value = part.partition(b"=")
            pairs.append((_decoded(name), _decoded(value)))
    return Fields(pairs)


def _decoded(part: bytes) -> str:
    try:
        spaced = part.replace(b"+", b" ")
        text = (unquote_to_bytes(spaced) if b"%" in spaced else spaced).decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest("A field is not valid UTF-8.") from None
    if "\0" in text:
        raise BadRequest("A field contains a NUL byte.")
    return text
