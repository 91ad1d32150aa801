"""Converts JSON to the dataclasses of `models` and back. Unknown members are ignored, known ones are checked.

A required member that is missing or has the wrong type raises UnexpectedResponse with its name, instead of a later
AttributeError in the user's script.
"""

import dataclasses
import functools
import types
import typing
from collections.abc import Hashable
from datetime import UTC, datetime
from typing import Any, TypeVar

from hubgate.client.errors import UnexpectedResponse

T = TypeVar("T")


def decode(shape: type[T], data: object) -> T:
    return typing.cast("T", _read(shape, data, shape.__name__))


def decode_list(shape: type[T], data: object) -> list[T]:
    if not isinstance(data, list):
        raise UnexpectedResponse(f"The hub's response is not a list of {shape.__name__}.")
    return [decode(shape, item) for item in data]


def member(data: object, name: str) -> Any:
    """A member of a JSON object in a response."""
    if not isinstance(data, dict) or name not in data:
        raise UnexpectedResponse(f"The hub's response has no {name!r}.")
    return data[name]


def encode(value: object) -> Any:
    """The JSON form of a value, with the wire's names. None is omitted, except where the hub sends null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {_wire_name(f): encode(item) for f, item in pairs if item is not None or "null" in f.metadata}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value


@functools.cache
def _fields(shape: Hashable) -> list[tuple[str, str, Any, bool]]:
    """The fields of a dataclass: name, wire name, type, and whether the field is required."""
    kind = typing.cast("type[Any]", shape)
    hints = typing.get_type_hints(kind)
    return [
        (
            field.name,
            _wire_name(field),
            hints[field.name],
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(kind)
    ]


def _wire_name(field: "dataclasses.Field[Any]") -> str:
    return str(field.metadata.get("wire") or camel_case(field.name))


def camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


def _read(kind: Any, data: object, where: str) -> object:
    if kind is Any:
        return data
    if isinstance(kind, types.UnionType):
        return _read_union(kind, data, where)
    if typing.get_origin(kind) is list:
        if isinstance(data, list):
            return [_read(typing.get_args(kind)[0], item, where) for item in data]
    elif typing.get_origin(kind) is dict:
        if isinstance(data, dict):
            return data
    elif dataclasses.is_dataclass(kind):
        if isinstance(data, dict):
            return _read_fields(typing.cast("type[Any]", kind), data, where)
    elif kind is datetime:
        return _read_time(data, where)
    elif isinstance(data, kind) and (kind is bool or not isinstance(data, bool)):
        return data
    raise UnexpectedResponse(f"The hub's response has an unexpected value at {where}.")


def _read_union(kind: Any, data: object, where: str) -> object:
    options = typing.get_args(kind)
    if data is None and types.NoneType in options:
        return None
    for option in options[:-1]:
        if option is not types.NoneType:
            try:
                return _read(option, data, where)
            except UnexpectedResponse:
                continue
    last = options[-1] if options[-1] is not types.NoneType else options[-2]
    return _read(last, data, where)


def _read_fields(shape: type[Any], data: dict[str, Any], where: str) -> object:
    given = {}
    for name, wire, kind, required in _fields(typing.cast("Hashable", shape)):
        if wire in data:
            given[name] = _read(kind, data[wire], f"{where}.{wire}")
        elif required and not (isinstance(kind, types.UnionType) and types.NoneType in typing.get_args(kind)):
            raise UnexpectedResponse(f"The hub's response has no {where}.{wire}.")
        elif required:
            given[name] = None
    return shape(**given)


def _read_time(data: object, where: str) -> datetime:
    try:
        if isinstance(data, str):
            found = datetime.fromisoformat(data)
            return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        # The year 1 in a time zone east of UTC has no time in UTC.
        pass
    raise UnexpectedResponse(f"The hub's response has no valid time at {where}.")
