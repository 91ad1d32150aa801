"""How many deliveries led to a change, so that receivers that change what they watch cannot go in circles (W28).

A receiver passes on the depth of the delivery it was sent; what it changes is one deeper.
"""

from contextvars import ContextVar

HEADER = "x-hubgate-depth"
_DEEPEST = 1000
_depth: ContextVar[int] = ContextVar("hubgate_depth", default=0)


def enter(header: str | None) -> None:
    """For the request at hand, with the header it came with."""
    known = header is not None and header.isascii() and header.isdigit()
    _depth.set(min(int((header or "")[:6]) + 1, _DEEPEST) if known else 0)


def depth_of_change() -> int:
    """Also inside a unit of work, which runs in the context of its caller."""
    return _depth.get()
