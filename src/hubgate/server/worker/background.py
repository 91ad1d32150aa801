"""The background process, which runs deliveries and all background loops.

`hubgate serve` starts one next to its web processes, at a lower priority so that deliveries do not slow down responses.
`hubgate deliver` runs the background process alone; several may run, on any machine.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

from hubgate.server import log_formats
from hubgate.server.accounts.tokens import expiry
from hubgate.server.audit.retention import AuditRetention
from hubgate.server.audit.seal import Sealer
from hubgate.server.hub.repos import commit_counts, housekeeping
from hubgate.server.hub.search import compaction, indexing
from hubgate.server.resources import Hub, open_hub
from hubgate.server.settings import Settings
from hubgate.server.webhooks.activity import rollup
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.deliverer import Deliverer
from hubgate.server.webhooks.fanout.fanning import FanOut
from hubgate.server.webhooks.management import backlogs
from hubgate.server.webhooks.permissions import grants
from hubgate.server.webhooks.replaying.runner import ReplayRunner
from hubgate.server.webhooks.retention.deletion import EVERY_SECONDS, Retention
from hubgate.server.worker.child import (
    NICENESS,
    raise_file_limit,
    report_ready,
    run_and_exit,
    run_with_uvloop,
    settings_from_parent,
    stop_event,
)
from hubgate.server.worker.gauges import set_gauges
from hubgate.server.worker.loops import Loop, LoopRunner
from hubgate.server.worker.servers import GRACE_SECONDS
from hubgate.server.worker.sweep import Sweep


def _unchanged(webhooks: Webhooks) -> Webhooks:
    return webhooks


async def run(
    settings: Settings,
    stop: asyncio.Event,
    on_ready: Callable[[], None],
    adjust_webhooks: Callable[[Webhooks], Webhooks] = _unchanged,
) -> None:
    """Run all background loops until `stop` is set. The test build passes `adjust_webhooks` to shorten intervals."""
    raise_file_limit()
    hub = await open_hub(settings, by_index=True)
    webhooks = adjust_webhooks(hub.webhooks)
    deliverer = Deliverer(webhooks, stop, hub.senders_folder)
    fan_out = FanOut(webhooks, deliverer)
    loops = [
        Sweep(hub.db, hub.clock).loop(),
        Loop("mail", every_seconds=5, step=hub.outbox.send_due),
        Loop("token expiry", expiry.EVERY_SECONDS, expiry.TokenExpiry(hub.accounts).step),
        Loop("housekeeping", housekeeping.EVERY_SECONDS, housekeeping.Housekeeping(hub.repos).step),
        Loop("commit counts", commit_counts.EVERY_SECONDS, commit_counts.CommitCounter(hub.repos).step),
        Loop("search index", indexing.EVERY_SECONDS, indexing.SearchIndexer(hub.repos).step),
        Loop("search compaction", compaction.EVERY_SECONDS, compaction.Compaction(hub.db).step),
        Loop("fan-out", hub.db.poll_seconds, fan_out.step, webhooks.pace.fan_out_lease_seconds, deliverer.new_events),
        Loop("backlogs", backlogs.EVERY_SECONDS, backlogs.Backlogs(webhooks).step),
        Loop("activity roll-up", rollup.EVERY_SECONDS, rollup.RollUp(webhooks).step),
        Loop("webhooks of apps", grants.EVERY_SECONDS, grants.GrantChecks(webhooks).step),
        Loop("delivery retention", EVERY_SECONDS, Retention(webhooks, settings.delivery_retention_days).step),
        *_audit_loops(hub),
    ]
    running = asyncio.gather(
        LoopRunner(hub.db, hub.clock, stop).run(loops),
        deliverer.run(),
        ReplayRunner(webhooks, deliverer).run(stop),
        set_gauges(hub, stop),
    )
    on_ready()

    def on_loops_ended(future: asyncio.Future[Any]) -> None:
        if not future.cancelled():
            # Retrieve the exception: asyncio would otherwise log it after the cancellation below.
            future.exception()
        stop.set()

    running.add_done_callback(on_loops_ended)
    await stop.wait()
    # A step that waits for a hanging database is abandoned: its transaction is atomic.
    ended, _ = await asyncio.wait([running], timeout=GRACE_SECONDS)
    running.cancel()
    await hub.close()
    if ended:
        # Raise the error of a loop that failed, which is a bug. The parent then starts a new process.
        running.result()


def _audit_loops(hub: Hub) -> list[Loop]:
    loops = [Loop("seal", every_seconds=1, step=Sealer(hub.db, hub.clock, hub.secret).step)]
    if days := hub.settings.audit_retention_days:
        retention = AuditRetention(hub.db, hub.clock, hub.secret, days)
        loops.append(Loop("audit retention", every_seconds=3600, step=retention.step))
    return loops


def main(adjust_webhooks: Callable[[Webhooks], Webhooks] = _unchanged) -> None:
    run_and_exit(_as_child(int(sys.argv[1]), adjust_webhooks), run_with_uvloop)


async def _as_child(ready_fd: int, adjust_webhooks: Callable[[Webhooks], Webhooks]) -> None:
    settings = settings_from_parent()
    log_formats.configure(settings.log)
    os.nice(NICENESS)
    await run(settings, stop_event(), lambda: report_ready(ready_fd), adjust_webhooks)


if __name__ == "__main__":
    main()
