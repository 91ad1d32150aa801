"""Named moments at which a test may make this process die or wait.

Nothing in the product arms one: there is no setting and no variable for it. The test build fills `armed` in its own
processes; everywhere else `hit` finds it empty.
"""

from collections.abc import Callable

armed: dict[str, Callable[[], None]] = {}


def hit(name: str) -> None:
    if armed:
        armed.get(name, _nothing)()


def _nothing() -> None:
    pass
