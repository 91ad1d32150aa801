"""Arguments that the commands on webhooks share."""

import argparse
import re

from hubgate.cli.user import common
from hubgate.client import Hub, HubgateError

# This many characters at the end of an id are enough if no other webhook of the owner has the same.
SHORT_ID = 6
_SHORT_ID = re.compile(rf"[0-9a-fA-F]{{{SHORT_ID}}}\Z")
_ID_HELP = "the ID, or its last six characters, as shown by `hubgate webhooks list`"


def add(
    commands: common.Subparsers, name: str, summary: str, run: common.Run, examples: str
) -> argparse.ArgumentParser:
    parser = common.add(commands, name, summary, run, examples)
    parser.add_argument("--org", metavar="ORG", help="use this organization's webhooks (admins only)")
    return parser


def add_with_id(
    commands: common.Subparsers, name: str, summary: str, run: common.Run, examples: str
) -> argparse.ArgumentParser:
    parser = add(commands, name, summary, _with_whole_id(run), examples)
    parser.add_argument("id", metavar="ID", help=_ID_HELP)
    return parser


def add_optional_id(parser: argparse.ArgumentParser, otherwise: str) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", help=f"{_ID_HELP}; {otherwise}")


def _with_whole_id(run: common.Run) -> common.Run:
    def run_with_whole_id(options: argparse.Namespace, hub: Hub) -> int:
        options.id = whole_id(hub, options.id, options.org)
        return run(options, hub)

    return run_with_whole_id


def whole_id(hub: Hub, given: str, organization: str | None) -> str:
    """The id of a webhook. The last six characters are enough if no other webhook of the owner has the same."""
    if not _SHORT_ID.match(given):
        return given
    listed = hub.list_webhooks(organization=organization)
    found = [webhook.id for webhook in listed if webhook.id.endswith(given.lower())]
    if not found:
        raise HubgateError(f"you have no webhook whose ID ends in {given}. Try: hubgate webhooks list")
    if len(found) > 1:
        raise HubgateError(f"{len(found)} of your webhooks have an ID that ends in {given}. Use the whole ID.")
    return found[0]


def short_ids(ids: list[str]) -> dict[str, str]:
    """The ends of ids, as far as they are unique; otherwise the whole ids."""
    ends = [each[-SHORT_ID:] for each in ids]
    return {each: end if ends.count(end) == 1 else each for each, end in zip(ids, ends, strict=True)}


def org_option(options: argparse.Namespace) -> str:
    """The --org option for a suggested command."""
    return f" --org {options.org}" if options.org else ""


def add_watch(parser: argparse.ArgumentParser, *, required: bool, otherwise: str = "") -> None:
    watch = f"user:NAME, org:NAME, model:NAME, dataset:NAME or space:NAME; may be repeated{otherwise}"
    parser.add_argument(
        "--watch", nargs="+", action="extend", type=_watch, required=required, metavar="TYPE:NAME", help=watch
    )


def _watch(text: str) -> str:
    kind, _, name = text.partition(":")
    if not kind or not name:
        raise argparse.ArgumentTypeError(f"must be TYPE:NAME, such as org:acme, not {text!r}")
    return text
