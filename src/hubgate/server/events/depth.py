"""The depth of a change: how many deliveries led to it, so that receivers cannot cause endless loops (attack W28).

A receiver sends back the depth of the delivery it received; its changes are one level deeper.
"""

from contextvars import ContextVar

HEADER = "x-hubgate-depth"
_DEEPEST = 1000
_depth: ContextVar[int] = ContextVar("hubgate_depth", default=0)


def set_depth(header: str | None) -> None:
    """Set the depth of the current request from its header."""
    is_valid = header is not None and header.isascii() and header.isdigit()
    _depth.set(min(int((header or "")[:6]) + 1, _DEEPEST) if is_valid else 0)


def depth_of_change() -> int:
    """The depth of changes made by the current request. Also works inside a transaction, which runs in its context."""
    return _depth.get()
