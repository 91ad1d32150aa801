"""Drivers for the client library that call a function instead of sleeping."""

from collections.abc import Callable
from typing import Any, TypeVar

from hubgate import AsyncHub, Hub
from hubgate.client.async_transport import AsyncDriver
from hubgate.client.transport import Driver
from hubgate.client.wire import Sleep

Face = TypeVar("Face", Hub, AsyncHub)


class Impatient(Driver):
    def __init__(self, timeout: float, instead: Callable[[float], object]) -> None:
        super().__init__(timeout)
        self._instead = instead

    def _done(self, effect: Any) -> object:
        if isinstance(effect, Sleep):
            self._instead(effect.seconds)
            return None
        return super()._done(effect)


class AsyncImpatient(AsyncDriver):
    def __init__(self, timeout: float, instead: Callable[[float], object]) -> None:
        super().__init__(timeout)
        self._instead = instead

    async def _done(self, effect: Any) -> object:
        if isinstance(effect, Sleep):
            self._instead(effect.seconds)
            return None
        return await super()._done(effect)


def impatient(hub: Face, instead: Callable[[float], object]) -> Face:
    driver: Any = {Hub: Impatient, AsyncHub: AsyncImpatient}[type(hub)]
    hub._driver = driver(hub._driver._timeout, instead)
    hub._run = hub._driver.run
    return hub
