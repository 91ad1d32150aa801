"""The background process: the loops that must run somewhere, whichever machine that is.

`hubgate serve` runs one beside its web processes, at a lower priority so that deliveries never slow an answer;
`hubgate deliver` runs it alone, as many times as wanted.
"""

import asyncio
import os
import sys

from hubgate.server import logs
from hubgate.server.app import open_hub
from hubgate.server.settings import Settings
from hubgate.server.worker.child import report_ready, settings_from_parent, stop_event
from hubgate.server.worker.loops import LoopRunner
from hubgate.server.worker.sweep import Sweep

BACKGROUND_NICENESS = 10


async def run(settings: Settings, stop: asyncio.Event) -> None:
    hub = await open_hub(settings)
    try:
        await LoopRunner(hub.db, hub.clock, stop).run([Sweep(hub.db, hub.clock).loop()])
    finally:
        await hub.close()


def main() -> None:
    asyncio.run(_as_child(ready_fd=int(sys.argv[1])))


async def _as_child(ready_fd: int) -> None:
    settings = settings_from_parent()
    logs.configure()
    os.nice(BACKGROUND_NICENESS)
    stop = stop_event()
    report_ready(ready_fd)
    await run(settings, stop)


if __name__ == "__main__":
    main()
