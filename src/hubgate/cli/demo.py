"""Run a hub with example content, an app that users sign in to, and a webhook receiver, until Ctrl-C or SIGTERM.

Its data is in the folder demo below the data folder; a second start continues with it.
"""

import argparse
import sys

from hubgate.demo import running
from hubgate.server import log_formats
from hubgate.server.errors import StartupError
from hubgate.server.settings import OPTIONS, Settings, load
from hubgate.server.startup import with_actual_port
from hubgate.server.worker.supervisor import bind

# Taken from the environment and hubgate.toml. All others have their defaults: the demo needs no other service, and no
# limit of the operator's may be in its way.
_FROM_OUTSIDE = ("port", "server", "workers", "log")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reset", action="store_true", help="delete the demo's data and start anew")
    parser.add_argument("--port", metavar="PORT", help="port of the hub (default HUBGATE_PORT, or 8000); 0: any")
    parser.add_argument("--app-port", type=_port, default=0, metavar="PORT", help="port of the example app")
    parser.add_argument("--receiver-port", type=_port, default=0, metavar="PORT", help="port of the receiver")
    parser.add_argument("--data-dir", metavar="FOLDER", help="data folder (default HUBGATE_DATA_DIR)")


def _port(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to 65535, not {text!r}")
    return int(text)


def run(options: argparse.Namespace) -> int:
    settings = _settings(options)
    log_formats.configure(settings.log)
    demo = running.Demo(settings, options.app_port, options.receiver_port, _write)
    try:
        running.run(demo, reset=options.reset)
    except OSError as error:
        raise StartupError(f"{error.strerror or error}") from error
    return 0


def _settings(options: argparse.Namespace) -> Settings:
    given = {"port": options.port, "data_dir": options.data_dir}
    outside = load({name: value for name, value in given.items() if value is not None})
    chosen = {name: outside.raw[name] for name in _FROM_OUTSIDE}
    chosen |= {"data_dir": str(outside.data_dir / "demo"), "egress_allow": "127.0.0.0/8"}
    settings = load({item.name: item.metadata["default"] for item in OPTIONS} | chosen)
    if settings.port:
        return settings
    with bind(settings.host, 0) as free:
        return with_actual_port(settings, free.getsockname()[1])


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
