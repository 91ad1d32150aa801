"""Running a coroutine to its end from anywhere, also where this thread's loop runs already (Playwright keeps one)."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def blocking(work: Coroutine[Any, Any, T], run: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run) -> T:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run, work).result()
