"""Counts the Python functions that a hub calls on its event loop, where work blocks every other request."""

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from types import FrameType
from typing import Any

from tests.bed.running_hub import RunningHub

from hubgate.server.resources import Hub


@contextlib.contextmanager
def calls_on_loop(hub: RunningHub) -> Iterator[Counter[str]]:
    """Count calls by function name, including C functions. Calls in other threads are not counted."""
    calls: Counter[str] = Counter()

    def count_call(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            calls[frame.f_code.co_name] += 1
        elif event == "c_call":
            calls[arg.__name__] += 1

    async def start(_: Hub) -> None:
        sys.setprofile(count_call)

    async def stop(_: Hub) -> None:
        sys.setprofile(None)

    hub.call(start)
    try:
        yield calls
    finally:
        hub.call(stop)
