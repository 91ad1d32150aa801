"""`hubgate admin quota show | set | reset`: how many bytes of large files a user or an organization may store."""

import argparse
from typing import Any

from hubgate.cli.admin import common
from hubgate.server.accounts import store as account_store
from hubgate.server.errors import NotFound
from hubgate.server.hub.quotas import store
from hubgate.server.hub.quotas.quotas import usage_of
from hubgate.server.resources import Hub
from hubgate.server.setting_values import whole_number


def configure(subjects: Any) -> None:
    commands = common.group(subjects, "quota", "bytes of large files that a user or an organization may store")
    for name, summary, run in (
        ("show", "show the quota of an account, and the bytes in use", _show),
        ("reset", "apply the default, HUBGATE_STORAGE_QUOTA, to an account again", _reset),
    ):
        common.add(commands, name, summary, run).add_argument("name", metavar="NAME")
    change = common.add(commands, "set", "set the quota of an account", _set)
    change.add_argument("name", metavar="NAME", help="name of a user or an organization")
    change.add_argument("bytes", metavar="BYTES", type=whole_number(0, 1 << 50), help="0: no limit")


def _show(options: argparse.Namespace) -> int:
    return _print(options, common.with_hub(options, lambda hub: _described(hub, options.name)))


def _set(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, Any]:
        kind, owner_id, _ = await _find(hub, options.name)
        await hub.db.write(lambda tx: store.set_exception(tx, kind, owner_id, options.bytes))
        return await _described(hub, options.name)

    return _print(options, common.with_hub(options, work))


def _reset(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, Any]:
        kind, owner_id, _ = await _find(hub, options.name)
        await hub.db.write(lambda tx: store.drop_exception(tx, kind, owner_id))
        return await _described(hub, options.name)

    return _print(options, common.with_hub(options, work))


async def _find(hub: Hub, name: str) -> tuple[str, str, str]:
    """The kind, id and name of an account."""
    if user := await account_store.user_by_name(hub.db, name):
        return "user", user.id, user.name
    if organization := await account_store.organization_by_name(hub.db, name):
        return "org", organization.id, organization.name
    raise NotFound(f"User or organization {name} not found.")


async def _described(hub: Hub, name: str) -> dict[str, Any]:
    kind, owner_id, found = await _find(hub, name)
    usage = await usage_of(hub.repos, kind, owner_id)
    is_default = await store.exception(hub.db, kind, owner_id) is None
    return {"name": found, "used": usage.used, "limit": usage.limit, "isDefault": is_default}


def _print(options: argparse.Namespace, found: dict[str, Any]) -> int:
    limit = f"of {found['limit']:,}" if found["limit"] else "without a limit"
    default = " (the default)" if found["isDefault"] else ""
    return common.print_result(options, found, f"{found['name']} uses {found['used']:,} bytes {limit}{default}.")
