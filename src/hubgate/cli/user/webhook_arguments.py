"""Arguments that the commands on webhooks share."""

import argparse

from hubgate.cli.user import common


def add(
    commands: common.Subparsers, name: str, summary: str, run: common.Run, examples: str
) -> argparse.ArgumentParser:
    parser = common.add(commands, name, summary, run, examples)
    parser.add_argument("--org", metavar="ORG", help="use this organization's webhooks (admins only)")
    return parser


def add_with_id(
    commands: common.Subparsers, name: str, summary: str, run: common.Run, examples: str
) -> argparse.ArgumentParser:
    parser = add(commands, name, summary, run, examples)
    parser.add_argument("id", metavar="ID", help="the ID in `hubgate webhooks list`")
    return parser


def org_option(options: argparse.Namespace) -> str:
    """The --org option for a suggested command."""
    return f" --org {options.org}" if options.org else ""
