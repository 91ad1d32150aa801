"""Failpoints of the test build, armed by an environment variable."""

import os
import signal
from collections.abc import Callable

from hubgate.server import failpoint

FAILPOINTS = "TEST_FAILPOINTS"


def arm_failpoints() -> None:
    """Arm the failpoints in TEST_FAILPOINTS. `name:hits` sends SIGKILL to the process at that hit of the failpoint;
    `name:hits:SIGSTOP` freezes the process.
    """
    for item in filter(None, os.environ.get(FAILPOINTS, "").split(",")):
        name, hits, *how = item.split(":")
        failpoint.armed[name] = _signaller(int(hits), signal.Signals[how[0]] if how else signal.SIGKILL)


def _signaller(hits: int, how: signal.Signals) -> Callable[[], None]:
    left = hits

    def hit() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), how)

    return hit
