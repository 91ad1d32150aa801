"""One admin command: its own arguments, then the settings and `--json`; and the hub that it works on."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from hubgate.cli import hub_settings
from hubgate.cli.output import print_json, print_table
from hubgate.server.opened import Hub
from hubgate.server.running import opened_for_operator

Subparsers = Any
T = TypeVar("T")

# Beside a secret, for people; not in a pipe, where a script wants the secret alone.
ONCE = "Copy it now. We store only a fingerprint and cannot show it again."


def group(subjects: Subparsers, name: str, summary: str) -> Subparsers:
    """A subject with commands of its own."""
    parser = subjects.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    return parser.add_subparsers(required=True, metavar="COMMAND")


def add(
    commands: Subparsers, name: str, summary: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="print one JSON object or list")
    hub_settings.add_to(parser, hub_settings.FOR_OPERATORS)
    return parser


def with_hub(options: argparse.Namespace, work: Callable[[Hub], Awaitable[T]]) -> T:
    """Mail that the work causes is sent, or safe in the outbox, when this returns."""

    async def run() -> T:
        async with opened_for_operator(hub_settings.read(options)) as hub:
            return await work(hub)

    return asyncio.run(run())


def say(options: argparse.Namespace, value: Any, sentence: str) -> int:
    print_json(value) if options.json else print(sentence)
    return 0


def show(options: argparse.Namespace, value: Any, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    print_json(value) if options.json else print_table(headings, rows)
    return 0
