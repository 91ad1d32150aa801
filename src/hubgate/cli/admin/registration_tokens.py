"""`hubgate admin registration-token create | list | revoke ID`."""

import argparse
import sys
from typing import Any

from hubgate.cli.admin import common
from hubgate.server.clock import iso, iso_or_none
from hubgate.server.oauth.registration import initial_tokens
from hubgate.server.oauth.registration.initial_token import InitialToken
from hubgate.server.resources import Hub


def configure(subjects: Any) -> None:
    commands = common.group(
        subjects, "registration-token", "tokens with which apps register themselves (HUBGATE_DYNAMIC_REGISTRATION)"
    )
    common.add(commands, "create", "create a token and print it once", _create)
    common.add(commands, "list", "list all tokens, oldest first", _list)
    revoke = common.add(commands, "revoke", "revoke a token; apps registered with it stay", _revoke)
    revoke.add_argument("id", metavar="ID")


def _create(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, Any]:
        text, token = await initial_tokens.create(hub.oauth)
        return {"token": text, **_describe(token)}

    created = common.with_hub(options, work)
    return common.print_result(
        options, created, f"{created['token']}\n{common.SHOWN_ONCE}" if sys.stdout.isatty() else created["token"]
    )


def _list(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> list[dict[str, Any]]:
        return [_describe(token) for token in await initial_tokens.list_all(hub.oauth)]

    rows = common.with_hub(options, work)
    cells = [
        [r["id"], r["lastFour"], r["createdAt"][:10], (r["lastUsedAt"] or "never")[:10], str(r["registrations"])]
        for r in rows
    ]
    return common.print_rows(options, rows, ["ID", "LAST 4", "CREATED", "LAST USED", "APPS"], cells)


def _revoke(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> None:
        await initial_tokens.revoke(hub.oauth, options.id)

    common.with_hub(options, work)
    return common.print_result(options, {"revoked": options.id}, f"Revoked {options.id}.")


def _describe(token: InitialToken) -> dict[str, Any]:
    return {
        "id": token.id,
        "lastFour": token.last_four,
        "createdAt": iso(token.created_at),
        "lastUsedAt": iso_or_none(token.last_used_at),
        "registrations": token.registrations,
    }
