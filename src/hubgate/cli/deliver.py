"""Run only the background process. Several may run, on one or more machines."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from hubgate.cli import hub_settings
from hubgate.server import log_formats
from hubgate.server.settings import Settings
from hubgate.server.startup import background_metrics, prepared
from hubgate.server.worker.background import run as run_loops
from hubgate.server.worker.child import run_with_uvloop

RunLoops = Callable[[Settings, asyncio.Event, Callable[[], None]], Coroutine[Any, Any, None]]

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def configure(parser: argparse.ArgumentParser) -> None:
    hub_settings.add_to(parser)


def run(options: argparse.Namespace, loops: RunLoops = run_loops) -> int:
    """Run the background loops until a signal. The test build passes other `loops` to shorten intervals."""
    settings = hub_settings.read(options)
    log_formats.configure(settings.log)
    received_signals: list[int] = []
    for number in STOP_SIGNALS:
        signal.signal(number, lambda caught, _: received_signals.append(caught))
    with prepared(settings), background_metrics(settings):
        run_with_uvloop(_run_until_stopped(settings, received_signals, loops))
    return 0


async def _run_until_stopped(settings: Settings, received_signals: list[int], loops: RunLoops) -> None:
    stop = asyncio.Event()
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if received_signals:
        return
    await loops(settings, stop, lambda: _announce(settings))


def _announce(settings: Settings) -> None:
    """Print the settings for mail and links, which may differ from those of the machines that serve the web pages."""
    lines = [
        "hubgate deliver is running. Ctrl-C stops it.",
        f"  mail          {hub_settings.mail_destination(settings)}",
        f"  links         in mail begin with {settings.base_url} (HUBGATE_BASE_URL)",
    ]
    # One write: a program that waits for the first line may close the pipe after it.
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
