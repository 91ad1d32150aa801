"""A driver of the client's flows that does not wait: where it should sleep it does something else."""

from collections.abc import Callable
from typing import Any

from hubgate import Hub
from hubgate.client.transport import Driver
from hubgate.client.wire import Sleep


class Impatient(Driver):
    def __init__(self, instead: Callable[[float], object]) -> None:
        super().__init__(20)
        self._instead = instead

    def _done(self, effect: Any) -> object:
        if isinstance(effect, Sleep):
            self._instead(effect.seconds)
            return None
        return super()._done(effect)


def impatient(hub: Hub, instead: Callable[[float], object]) -> Hub:
    hub._driver = Impatient(instead)
    hub._run = hub._driver.run
    return hub
