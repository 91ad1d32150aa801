"""The background process: the loops that must run somewhere, whichever machine that is.

`hubgate serve` runs one beside its web processes, at a lower priority so that deliveries never slow an answer;
`hubgate deliver` runs it alone, as many times as wanted.
"""

import asyncio
import os
import sys
from collections.abc import Callable

from hubgate.server import logs
from hubgate.server.audit.retention import Retention
from hubgate.server.audit.seal import Sealer
from hubgate.server.hub.repos import housekeeping
from hubgate.server.opened import Hub, open_hub
from hubgate.server.settings import Settings
from hubgate.server.webhooks.delivering.deliverer import Deliverer
from hubgate.server.webhooks.fanout.fanning import FanOut
from hubgate.server.worker.child import exit_as_child, report_ready, settings_from_parent, stop_event
from hubgate.server.worker.loops import Loop, LoopRunner
from hubgate.server.worker.servers import GRACE_SECONDS
from hubgate.server.worker.sweep import Sweep

BACKGROUND_NICENESS = 10


async def run(settings: Settings, stop: asyncio.Event, on_ready: Callable[[], None]) -> None:
    hub = await open_hub(settings)
    loops = [
        Sweep(hub.db, hub.clock).loop(),
        Loop("mail", every_seconds=5, step=hub.outbox.send_due),
        Loop("housekeeping", housekeeping.EVERY_SECONDS, housekeeping.Housekeeping(hub.repos).step),
        Loop("fan-out", every_seconds=0.1, step=FanOut(hub.webhooks).step),
        *_audit(hub),
    ]
    running = asyncio.gather(LoopRunner(hub.db, hub.clock, stop).run(loops), Deliverer(hub.webhooks, stop).run())
    on_ready()
    await stop.wait()
    # A step that waits for a database that hangs is left behind: its unit is saved whole or not at all.
    await asyncio.wait([running], timeout=GRACE_SECONDS)
    running.cancel()
    await hub.close()


def _audit(hub: Hub) -> list[Loop]:
    loops = [Loop("seal", every_seconds=1, step=Sealer(hub.db, hub.clock, hub.secret).step)]
    if days := hub.settings.audit_retention_days:
        retention = Retention(hub.db, hub.clock, hub.secret, days)
        loops.append(Loop("audit retention", every_seconds=3600, step=retention.step))
    return loops


def main() -> None:
    exit_as_child(_as_child(ready_fd=int(sys.argv[1])))


async def _as_child(ready_fd: int) -> None:
    settings = settings_from_parent()
    logs.configure()
    os.nice(BACKGROUND_NICENESS)
    await run(settings, stop_event(), lambda: report_ready(ready_fd))


if __name__ == "__main__":
    main()
