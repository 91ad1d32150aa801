"""Shared parts of admin commands: common arguments, opening the hub, finding and describing accounts, and output."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from hubgate.cli import hub_settings
from hubgate.cli.output import print_json, print_table
from hubgate.server.accounts import store
from hubgate.server.accounts.model import Organization, User
from hubgate.server.clock import iso, iso_or_none
from hubgate.server.errors import Conflict, NotFound
from hubgate.server.resources import Hub
from hubgate.server.startup import opened_for_operator

Subparsers = Any
T = TypeVar("T")

# Shown with a secret on a terminal, but not in a pipe, where a script expects only the secret.
SHOWN_ONCE = "Copy it now. Only a fingerprint is stored, so it cannot be shown again."


def group(subjects: Subparsers, name: str, summary: str) -> Subparsers:
    """Add a group of commands."""
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
    """Run `work` with an open hub. On return, mail that `work` created has been sent or stored in the outbox."""

    async def run() -> T:
        async with opened_for_operator(hub_settings.read_for_operator(options)) as hub:
            return await work(hub)

    return asyncio.run(run())


def print_result(options: argparse.Namespace, value: Any, sentence: str) -> int:
    """Print `value` with --json, otherwise `sentence`."""
    print_json(value) if options.json else print(sentence)
    return 0


def print_rows(options: argparse.Namespace, value: Any, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    print_json(value) if options.json else print_table(headings, rows)
    return 0


async def find_user(hub: Hub, name: str) -> User:
    found = await store.user_by_name(hub.db, name)
    if found is None:
        raise NotFound(f"User {name} not found. List all with: hubgate admin user list")
    return found


async def find_enabled_user(hub: Hub, name: str) -> User:
    found = await find_user(hub, name)
    if found.disabled_at is not None:
        raise Conflict(f"{found.name} is disabled. First run: hubgate admin user enable {found.name}")
    return found


async def find_organization(hub: Hub, name: str) -> Organization:
    found = await store.organization_by_name(hub.db, name)
    if found is None:
        raise NotFound(f"Organization {name} not found. List all with: hubgate admin org list")
    return found


def describe_user(found: User) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "fullname": found.fullname,
        "email": found.email,
        "emailVerified": found.email_verified_at is not None,
        "operator": bool(found.operator),
        "canPay": bool(found.can_pay),
        "createdAt": iso(found.created_at),
        "disabledAt": iso_or_none(found.disabled_at),
    }


def describe_organization(found: Organization) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "fullname": found.fullname,
        "plan": found.plan,
        "canPay": bool(found.can_pay),
        "createdAt": iso(found.created_at),
    }
