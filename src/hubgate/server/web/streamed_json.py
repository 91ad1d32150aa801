"""JSON that is sent in parts, so that a long list is never in memory at once."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TypeVar

import msgspec

T = TypeVar("T")


async def json_array(
    parts: AsyncGenerator[Sequence[T], None], describe: Callable[[T], object]
) -> AsyncGenerator[bytes, None]:
    """A JSON array with one item per line, for line-based tools. The parts are not empty."""
    separator = b"[\n"
    async with aclosing(parts):
        async for part in parts:
            yield separator + b",\n".join(msgspec.json.encode(describe(item)) for item in part)
            separator = b",\n"
    yield b"\n]\n" if separator == b",\n" else b"[]\n"


async def json_object(
    members: Mapping[str, object], arrays: Mapping[str, AsyncGenerator[bytes, None]]
) -> AsyncGenerator[bytes, None]:
    """A JSON object with at least one member, followed by arrays of `json_array`."""
    yield msgspec.json.format(msgspec.json.encode(members), indent=2).removesuffix(b"\n}")
    for name, array in arrays.items():
        yield b",\n  " + msgspec.json.encode(name) + b": "
        async with aclosing(array):
            async for part in array:
                yield part.removesuffix(b"\n")
    yield b"\n}\n"
