"""One admin command: its own arguments, then the settings and `--json`."""

import argparse
from collections.abc import Callable
from typing import Any

from hubgate.cli import hub_settings

Subparsers = Any


def add(
    commands: Subparsers, name: str, summary: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="print one JSON object or list")
    hub_settings.add_to(parser, hub_settings.FOR_OPERATORS)
    return parser
