"""Runs a coroutine synchronously, even in a thread with a running event loop (such as Playwright's)."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_blocking(work: Coroutine[Any, Any, T], run: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run) -> T:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run, work).result()
