"""Concurrent calls."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def run_concurrently(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run the calls in threads that start at the same time; the results are in the order of the calls."""
    barrier = threading.Barrier(len(calls), timeout=60)

    def run(call: Callable[[], T]) -> T:
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(120) for future in [pool.submit(run, call) for call in calls]]
