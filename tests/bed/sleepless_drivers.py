"""Drivers for the client library that call a function instead of sleeping."""

from collections.abc import Callable
from typing import Any, TypeVar

from hubgate import AsyncHub, Hub
from hubgate.client.async_transport import AsyncDriver
from hubgate.client.transport import Driver
from hubgate.client.wire import Sleep

AnyHub = TypeVar("AnyHub", Hub, AsyncHub)


class SleeplessDriver(Driver):
    def __init__(self, timeout: float, instead: Callable[[float], object]) -> None:
        super().__init__(timeout)
        self._instead = instead

    def _perform(self, effect: Any) -> object:
        if isinstance(effect, Sleep):
            self._instead(effect.seconds)
            return None
        return super()._perform(effect)


class AsyncSleeplessDriver(AsyncDriver):
    def __init__(self, timeout: float, instead: Callable[[float], object]) -> None:
        super().__init__(timeout)
        self._instead = instead

    async def _perform(self, effect: Any) -> object:
        if isinstance(effect, Sleep):
            self._instead(effect.seconds)
            return None
        return await super()._perform(effect)


def without_sleeping(hub: AnyHub, instead: Callable[[float], object]) -> AnyHub:
    driver: Any = {Hub: SleeplessDriver, AsyncHub: AsyncSleeplessDriver}[type(hub)]
    hub._driver = driver(hub._driver._timeout, instead)
    return hub
