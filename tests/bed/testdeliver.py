"""The background process of the test build: as a child process, or standalone like `hubgate deliver`.

Armed failpoints kill the process. `TEST_PACE=dead_after,deadline,heartbeat`, in seconds, sets these three, and shortens
retries and the lease of the fan-out, for which events wait after a kill. `TEST_CLOCK` moves the clock
(`moved_clock.py`).
"""

import argparse
import os
import sys
from functools import partial

from msgspec.structs import replace
from tests.bed.failpoints import arm_failpoints
from tests.bed.moved_clock import follow_clock_file
from tests.bed.slow_polls import slow_down_polls

from hubgate.cli import deliver as alone
from hubgate.server.clock import SECOND
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.model import Pace
from hubgate.server.worker import background

PACE = "TEST_PACE"
FAN_OUT_LEASE_SECONDS = 3


def paced(webhooks: Webhooks) -> Webhooks:
    slow_down_polls(webhooks.db)
    text = os.environ.get(PACE)
    if not text:
        return webhooks
    dead_after, deadline, heartbeat = map(float, text.split(","))
    # Many short retries: a fault test fails its deliveries more often than any receiver would.
    backoff = (SECOND // 2,) * 1000
    return replace(webhooks, pace=Pace(deadline, dead_after, heartbeat, backoff, FAN_OUT_LEASE_SECONDS))


def main() -> None:
    arm_failpoints()
    follow_clock_file()
    if sys.argv[1].isdigit():
        background.main(paced)
    parser = argparse.ArgumentParser()
    alone.configure(parser)
    alone.run(parser.parse_args(), partial(background.run, adjust_webhooks=paced))


if __name__ == "__main__":
    main()
