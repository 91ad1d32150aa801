"""Background delivery during a test with a frozen clock."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from tests.bed.running_hub import RunningHub
from tests.bed.webhooks import settle


@contextmanager
def deliver_in_background(hub: RunningHub, send: Callable[[RunningHub], object] = settle) -> Iterator[None]:
    """Deliver in a thread, for responses that wait for a delivery."""
    stop = Event()

    def work() -> None:
        while not stop.wait(0.02):
            send(hub)

    thread = Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
