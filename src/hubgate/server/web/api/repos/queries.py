"""Query parameters as several generations of clients spell them."""

from hubgate.server.http.forms import Fields

_TRUE = ("1", "true")


def flag(fields: Fields, name: str) -> bool:
    """Return whether a flag is set. Clients send `true`, `True` or `1`."""
    return any(value.lower() in _TRUE for value in all_values(fields, name))


def all_values(fields: Fields, name: str) -> list[str]:
    """All values of a parameter that may repeat, with or without brackets."""
    spellings = (name, f"{name}[]")
    return [value for key, value in fields.pairs if key in spellings]


def paging(fields: Fields) -> dict[str, str]:
    """Return the last `limit` and `cursor` in one pass over all parameters."""
    return {name: value for name, value in fields.pairs if name in ("limit", "cursor")}


def last_value(fields: Fields, name: str, default: str = "") -> str:
    values = all_values(fields, name)
    return values[-1] if values else default
