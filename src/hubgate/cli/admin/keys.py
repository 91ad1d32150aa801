"""`hubgate admin keys rotate | list | revoke KID | reseal`."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from hubgate.cli import hub_settings
from hubgate.cli.admin import leaf
from hubgate.cli.output import print_json, print_table
from hubgate.server.app import Hub
from hubgate.server.clock import iso
from hubgate.server.oauth.keys.model import SigningKey, state_of
from hubgate.server.running import opened_for_operator

T = TypeVar("T")


def configure(subjects: Any) -> None:
    parser = subjects.add_parser("keys", help="keys that sign ID tokens, and what the server secret seals")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    leaf.add(commands, "rotate", "publish a new key; it signs ten minutes later", _rotate)
    leaf.add(commands, "list", "every key and its state", _list)
    leaf.add(commands, "revoke", "withdraw a leaked key at once", _revoke).add_argument("kid", metavar="KID")
    leaf.add(commands, "reseal", "seal everything under the first key of HUBGATE_SECRET_KEY", _reseal)


def _rotate(options: argparse.Namespace) -> int:
    key = _with_hub(options, lambda hub: hub.keys.rotate())
    if options.json:
        print_json(_described(key, [key], key.created_at))
    else:
        print(f"Published {key.kid}. It signs from {iso(key.signs_from)}.")
    return 0


def _list(options: argparse.Namespace) -> int:
    async def read(hub: Hub) -> list[dict[str, str | None]]:
        keys = await hub.keys.every()
        return [_described(key, keys, hub.clock()) for key in keys]

    rows = _with_hub(options, read)
    if options.json:
        print_json(rows)
    else:
        print_table(
            ["KID", "STATE", "SIGNS FROM", "PUBLISHED UNTIL"],
            [[str(value or "") for value in (r["kid"], r["state"], r["signsFrom"], r["publishedUntil"])] for r in rows],
        )
    return 0


def _revoke(options: argparse.Namespace) -> int:
    _with_hub(options, lambda hub: hub.keys.revoke(options.kid))
    print_json({"revoked": options.kid}) if options.json else print(f"Revoked {options.kid}.")
    return 0


def _reseal(options: argparse.Namespace) -> int:
    count = _with_hub(options, lambda hub: hub.keys.reseal())
    print_json({"resealed": count}) if options.json else print(f"Resealed {count}. Older keys may now be removed.")
    return 0


def _described(key: SigningKey, keys: list[SigningKey], now: int) -> dict[str, str | None]:
    return {
        "kid": key.kid,
        "state": state_of(key, keys, now).value,
        "algorithm": key.algorithm,
        "createdAt": iso(key.created_at),
        "signsFrom": iso(key.signs_from),
        "publishedUntil": iso(key.published_until) if key.published_until and key.revoked_at is None else None,
    }


def _with_hub(options: argparse.Namespace, work: Callable[[Hub], Awaitable[T]]) -> T:
    async def run() -> T:
        async with opened_for_operator(hub_settings.read(options)) as hub:
            return await work(hub)

    return asyncio.run(run())
