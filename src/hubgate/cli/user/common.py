"""Shared parts of user commands: common arguments, output, error messages and confirmation."""

import argparse
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hubgate.cli.output import print_json, print_table
from hubgate.client import Hub, HubgateError, NotSignedIn, Unreachable
from hubgate.client.addresses import REPO_TYPES
from hubgate.client.codec import encode

Subparsers = Any
Run = Callable[[argparse.Namespace, Hub], int]

_AGO = re.compile(r"(\d{1,6})(s|m|h|d)\Z")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Declined(HubgateError):
    """The user did not confirm."""


def configure(parser: argparse.ArgumentParser, run: Run, examples: str) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"examples:\n{examples.strip(chr(10))}"
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="print one JSON value instead of lines")
    parser.add_argument(
        "--endpoint",
        metavar="URL",
        help="the hub (default: HUBGATE_ENDPOINT, the hub you last signed in to, or http://127.0.0.1:8000)",
    )


def group(parser: argparse.ArgumentParser) -> Subparsers:
    return parser.add_subparsers(required=True, metavar="COMMAND")


def add(commands: Subparsers, name: str, summary: str, run: Run, examples: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=summary[0].upper() + summary[1:] + ".", allow_abbrev=False
    )
    configure(parser, run, examples)
    return parser


def add_type(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--type", choices=REPO_TYPES, help="the type of the repo (default model)")


def perform(options: argparse.Namespace) -> int:
    # Few retries: a user at a terminal should soon see that the hub is unreachable.
    with Hub(options.endpoint, retries=2) as hub:
        status: int = options.run(options, hub)
    return status


def error_message(error: HubgateError, endpoint: str | None) -> str:
    """An error message of one line that says how to fix the problem. `endpoint` is the command's --endpoint."""
    text = " ".join(str(error).split())
    if isinstance(error, NotSignedIn):
        if not text.endswith("hubgate login"):
            if os.environ.get("HUBGATE_TOKEN"):
                return f"the hub rejected HUBGATE_TOKEN ({text.rstrip('.')}). Unset it, or set a valid token."
            text = "not signed in. Run: hubgate login"
        return f"{text} --endpoint {shlex.quote(endpoint)}" if endpoint else text
    if isinstance(error, Unreachable) and error.worth_retrying and endpoint:
        return f"{text.rstrip('.')}. Check the address, and that the hub is running."
    if isinstance(error, Unreachable) and error.worth_retrying:
        return f"{text.rstrip('.')}. To use another hub: hubgate login --endpoint URL, or set HUBGATE_ENDPOINT"
    return text


def print_result(options: argparse.Namespace, value: object, sentence: str) -> int:
    """Print `value` with --json, otherwise `sentence`."""
    print_json(encode(value)) if options.json else print(sentence)
    return 0


def print_rows(
    options: argparse.Namespace, value: object, headings: Sequence[str], rows: Sequence[Sequence[str]]
) -> int:
    print_json(encode(value)) if options.json else print_table(headings, rows)
    return 0


def confirm(options: argparse.Namespace, consequence: str) -> None:
    """Ask for confirmation before a permanent deletion. Without a terminal, --yes is required."""
    if options.yes:
        return
    if not sys.stdin.isatty():
        raise Declined(f"{consequence} Pass --yes to confirm.")
    print(f"{consequence} Type yes to confirm: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() != "yes":
        raise Declined("Nothing was deleted.")


def named_repo(hub: Hub, repo: str) -> str:
    """The repo with its namespace, by default the user's own."""
    return repo if "/" in repo else f"{hub.whoami().name}/{repo}"


def parse_time(text: str) -> datetime:
    """Argparse type for times: 2h, 30m or 1d ago, or a time such as 2026-11-15T08:00Z. The default zone is UTC."""
    try:
        if match := _AGO.match(text):
            return datetime.now(UTC) - timedelta(**{_UNITS[match[2]]: int(match[1])})
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time. Use 2h, 1d or 2026-11-15T08:00Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def positive_integer(text: str) -> int:
    """Argparse type for positive integers."""
    if not re.fullmatch(r"0*[1-9]\d{0,8}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"must be a number of at least 1, not {text!r}")
    return int(text)


def age(when: datetime | None) -> str:
    """The age of a time in a short form for tables, such as 5m."""
    if when is None:
        return "-"
    seconds = max((datetime.now(UTC) - when).total_seconds(), 0)
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
