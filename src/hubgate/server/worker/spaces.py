"""The process that runs Spaces. `hubgate serve` starts one, if HUBGATE_SPACES_RUNNER names a runner."""

import asyncio
import os
import sys
from collections.abc import Callable
from dataclasses import replace

from hubgate.server import log_formats
from hubgate.server.egress.client import Egress
from hubgate.server.resources import Hub, egress_for, open_hub
from hubgate.server.settings import Settings
from hubgate.server.spaces.context import add_older_spaces
from hubgate.server.spaces.host.context import HostContext, Pace
from hubgate.server.spaces.host.process import SpacesProcess
from hubgate.server.spaces.runner import Limits
from hubgate.server.worker.child import (
    NICENESS,
    raise_file_limit,
    report_ready,
    run_and_exit,
    settings_from_parent,
    stop_event,
)
from hubgate.server.worker.space_runner import runner_for


def host_context(hub: Hub, egress: Egress, pace: Pace) -> HostContext:
    settings = hub.settings
    return HostContext(
        spaces=hub.spaces,
        runner=runner_for(settings),
        limits=Limits(
            cpu=settings.spaces_cpu / 100,
            memory=settings.spaces_memory,
            processes=settings.spaces_processes,
            disk=settings.spaces_disk,
        ),
        folders=hub.repos.folders,
        egress=egress,
        outbox=hub.outbox,
        folder=settings.data_dir / "spaces",
        index=settings.spaces_index,
        max_running=settings.spaces_running,
        max_per_owner=settings.spaces_per_owner,
        pace=pace,
    )


def egress_for_spaces(settings: Settings) -> Egress:
    """The client for outgoing connections of Spaces. The private networks that the operator allows are for webhooks: a
    Space could send anything there.
    """
    return egress_for(replace(settings, egress_allow=()))


async def run(settings: Settings, stop: asyncio.Event, on_ready: Callable[[], None]) -> None:
    raise_file_limit()
    hub = await open_hub(settings)
    egress = egress_for_spaces(settings)
    try:
        await add_older_spaces(hub.spaces)
        on_ready()
        await SpacesProcess(host_context(hub, egress, Pace())).run(stop)
    finally:
        egress.close()
        await hub.close()


def main() -> None:
    # Not uvloop: the parent of a sandbox is the thread that starts it, which must live as long as this process.
    run_and_exit(_as_child(int(sys.argv[1])), asyncio.run)


async def _as_child(ready_fd: int) -> None:
    settings = settings_from_parent()
    log_formats.configure(settings.log)
    os.nice(NICENESS)
    await run(settings, stop_event(), lambda: report_ready(ready_fd))


if __name__ == "__main__":
    main()
