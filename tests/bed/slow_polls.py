"""Polls of a process of the test build that are so far apart that only signals are in time.

TEST_POLL_SECONDS sets the interval at which deliveries, events, and requests through tunnels are looked for.
"""

import os

from hubgate.server.webhooks.delivering import deliverer
from hubgate.server.webhooks.tunnels import signalled_loop
from hubgate.server.worker import background

POLL_SECONDS = "TEST_POLL_SECONDS"


def slow_down_polls() -> None:
    if seconds := os.environ.get(POLL_SECONDS):
        for module in (background, deliverer, signalled_loop):
            vars(module)["POLL_SECONDS"] = float(seconds)
