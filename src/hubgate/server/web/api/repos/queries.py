"""Query parameters as several generations of clients spell them."""

from hubgate.server.http.forms import Fields

_TRUE = ("1", "true")


def flag(fields: Fields, name: str) -> bool:
    """`true`, `True` and `1` are all sent."""
    return any(value.lower() in _TRUE for value in every(fields, name))


def every(fields: Fields, name: str) -> list[str]:
    """All values of a parameter that may repeat, with or without brackets."""
    return [value for key, value in fields.pairs if key in (name, f"{name}[]")]


def last(fields: Fields, name: str, otherwise: str = "") -> str:
    values = every(fields, name)
    return values[-1] if values else otherwise
