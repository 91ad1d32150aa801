"""Shared parts of the commands on webhooks."""

import argparse

from hubgate.cli.user import common


def add(
    commands: common.Subparsers, name: str, summary: str, run_it: common.Run, examples: str
) -> argparse.ArgumentParser:
    parser = common.add(commands, name, summary, run_it, examples)
    parser.add_argument("--org", metavar="ORG", help="those of this organization, for its admins")
    return parser


def add_one(
    commands: common.Subparsers, name: str, summary: str, run_it: common.Run, examples: str
) -> argparse.ArgumentParser:
    parser = add(commands, name, summary, run_it, examples)
    parser.add_argument("id", metavar="ID", help="as `hubgate webhooks list` shows it")
    return parser


def said_org(options: argparse.Namespace) -> str:
    """The --org option for a suggested command."""
    return f" --org {options.org}" if options.org else ""
