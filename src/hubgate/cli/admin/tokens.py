"""`hubgate admin token create USER --role R [--name N] | list USER | revoke USER ID`."""

import argparse
import sys
from typing import Any

import msgspec

from hubgate.cli.admin import common
from hubgate.server.accounts.roles import TokenRole
from hubgate.server.accounts.tokens import personal
from hubgate.server.accounts.tokens.wire import token_info
from hubgate.server.resources import Hub

# Named in the mail to the user as the place where the token was created.
_CREATED_FROM = "the operator's command line"


def configure(subjects: Any) -> None:
    commands = common.group(subjects, "token", "personal tokens, for scripts and git")
    create = common.add(commands, "create", "create a token and print it once", _create)
    create.add_argument("user", metavar="USER")
    create.add_argument("--role", required=True, choices=[role.value for role in TokenRole])
    create.add_argument("--name", default="created by the operator", metavar="N")
    common.add(commands, "list", "list a user's tokens, newest first", _list).add_argument("user", metavar="USER")
    revoke = common.add(commands, "revoke", "revoke a token immediately", _revoke)
    revoke.add_argument("user", metavar="USER")
    revoke.add_argument("id", metavar="ID")


def _create(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, Any]:
        user = await common.find_enabled_user(hub, options.user)
        text, token = await personal.create(hub.accounts, user, options.name, TokenRole(options.role), _CREATED_FROM)
        return {"token": text, "user": user.name, **msgspec.to_builtins(token_info(token))}

    created = common.with_hub(options, work)
    return common.print_result(
        options, created, f"{created['token']}\n{common.SHOWN_ONCE}" if sys.stdout.isatty() else created["token"]
    )


def _list(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> list[dict[str, Any]]:
        user = await common.find_user(hub, options.user)
        return [msgspec.to_builtins(token_info(token)) for token in await personal.of_user(hub.accounts, user.id)]

    rows = common.with_hub(options, work)
    cells = [
        [r["id"], r["name"], r["role"], r["lastFour"], r["createdAt"][:10], (r["lastUsedAt"] or "never")[:10]]
        for r in rows
    ]
    return common.print_rows(options, rows, ["ID", "NAME", "ROLE", "LAST 4", "CREATED", "LAST USED"], cells)


def _revoke(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> None:
        user = await common.find_user(hub, options.user)
        await personal.revoke(hub.accounts, user.id, options.id)

    common.with_hub(options, work)
    return common.print_result(options, {"revoked": options.id}, f"Revoked {options.id}.")
