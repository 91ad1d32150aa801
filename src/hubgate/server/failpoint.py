"""Failpoints: named places where a test can kill or pause this process.

No setting or environment variable arms a failpoint. The test build fills `armed` in its own processes; in production
`armed` is empty and `hit` does nothing.
"""

from collections.abc import Callable

armed: dict[str, Callable[[], None]] = {}


def hit(name: str) -> None:
    if armed:
        armed.get(name, _do_nothing)()


def _do_nothing() -> None:
    pass
