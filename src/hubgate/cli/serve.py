"""Run the hub: web processes and one background process, until Ctrl-C or SIGTERM."""

import argparse
import shlex
import sys
from pathlib import Path

from hubgate.cli import hub_settings
from hubgate.server import log_formats
from hubgate.server.settings import Settings
from hubgate.server.startup import serve
from hubgate.server.worker.supervisor import MODULES, Modules


def configure(parser: argparse.ArgumentParser) -> None:
    hub_settings.add_to(parser)


def run(options: argparse.Namespace, modules: Modules = MODULES) -> int:
    """Serve until a signal. Tests pass other `modules`, whose processes start faster."""
    settings = hub_settings.read(options)
    log_formats.configure(settings.log)
    serve(settings, _announce, modules)
    return 0


def _announce(settings: Settings, setup_link: str | None) -> None:
    program = sys.argv[0] if Path(sys.argv[0]).name == "hubgate" else "hubgate"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    print(f"hubgate is ready: {settings.base_url}")
    print(f"  listening     http://{host}:{settings.port}")
    if setup_link:
        print(f"  set up        {setup_link}   (creates the operator; works once)")
    if not settings.smtp_url:
        print(f"  mail          {hub_settings.mail_destination(settings)}")
    if settings.objects_url:
        print(f"  large files   are stored in {settings.objects_url}")
    if settings.metrics_listen:
        print(f"  metrics       http://{settings.metrics_listen}/metrics")
    print(f"  docs          {settings.base_url}/docs")
    print(f"  build apps    {settings.base_url}/docs/sign-in")
    print(f"  check         {program} doctor --data-dir {shlex.quote(str(settings.data_dir))}")
    if settings.deliver == "off":
        print(f"  deliveries    wait until {program} deliver runs")
    print("  stop          Ctrl-C")
    sys.stdout.flush()
