"""Threads in which objects are read and written, and texts of strangers are read: disk, zlib and parsers would hold up
every other request of the process.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# More would only wait for the same disk; fewer would let one large tree hold up every download.
_THREADS = ThreadPoolExecutor(8, thread_name_prefix="git")

# What takes minutes for a large file, putting it together, syncing it: all of the others would soon be at it.
_LONG = ThreadPoolExecutor(4, thread_name_prefix="git-long")

# Strangers' texts, read and rendered: nothing here waits for a disk, and anyone may ask for it as often as they like.
_TEXTS = ThreadPoolExecutor(2, thread_name_prefix="text")

# The same for what is committed: a commit does not wait behind those who only read.
_CARDS = ThreadPoolExecutor(2, thread_name_prefix="card")


async def in_text_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await asyncio.get_running_loop().run_in_executor(_TEXTS, lambda: work(*args, **kwargs))


async def in_card_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await asyncio.get_running_loop().run_in_executor(_CARDS, lambda: work(*args, **kwargs))


async def in_long_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await asyncio.get_running_loop().run_in_executor(_LONG, lambda: work(*args, **kwargs))


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, lambda: work(*args, **kwargs))
