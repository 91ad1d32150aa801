"""Run the hub: web processes and one background process, until Ctrl-C or SIGTERM."""

import argparse
import sys

from hubgate.cli import hub_settings
from hubgate.server import logs
from hubgate.server.running import serve
from hubgate.server.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    hub_settings.add_to(parser)


def run(options: argparse.Namespace) -> int:
    logs.configure()
    serve(hub_settings.read(options), announce=_announce)
    return 0


def _announce(settings: Settings) -> None:
    print(f"hubgate is ready: {settings.base_url}")
    print(f"  look around   {settings.base_url}/docs/api")
    print("  check it      hubgate doctor")
    print("  stop          Ctrl-C")
    sys.stdout.flush()
