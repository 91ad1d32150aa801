"""`hubgate admin keys rotate | list | revoke KID | reseal`."""

import argparse
from typing import Any

from hubgate.cli.admin import leaf
from hubgate.server.audit.head import reseal as reseal_audit
from hubgate.server.clock import iso
from hubgate.server.oauth.keys.model import SigningKey, state_of
from hubgate.server.resources import Hub
from hubgate.server.webhooks.management.reseal import reseal as reseal_webhooks


def configure(subjects: Any) -> None:
    commands = leaf.group(subjects, "keys", "keys that sign ID tokens, and what the server secret seals")
    leaf.add(commands, "rotate", "publish a new key; it signs ten minutes later", _rotate)
    leaf.add(commands, "list", "every key and its state", _list)
    leaf.add(commands, "revoke", "withdraw a leaked key at once", _revoke).add_argument("kid", metavar="KID")
    leaf.add(commands, "reseal", "seal everything under the first key of HUBGATE_SECRET_KEY", _reseal)


def _rotate(options: argparse.Namespace) -> int:
    key = leaf.with_hub(options, lambda hub: hub.keys.rotate())
    sentence = f"Published {key.kid}. It signs from {iso(key.signs_from)}."
    return leaf.say(options, _described(key, [key], key.created_at), sentence)


def _list(options: argparse.Namespace) -> int:
    async def read(hub: Hub) -> list[dict[str, str | None]]:
        keys = await hub.keys.every()
        return [_described(key, keys, hub.clock()) for key in keys]

    rows = leaf.with_hub(options, read)
    cells = [[str(value or "") for value in (r["kid"], r["state"], r["signsFrom"], r["publishedUntil"])] for r in rows]
    return leaf.show(options, rows, ["KID", "STATE", "SIGNS FROM", "PUBLISHED UNTIL"], cells)


def _revoke(options: argparse.Namespace) -> int:
    leaf.with_hub(options, lambda hub: hub.keys.revoke(options.kid))
    return leaf.say(options, {"revoked": options.kid}, f"Revoked {options.kid}.")


def _reseal(options: argparse.Namespace) -> int:
    async def everything(hub: Hub) -> int:
        # Signing keys last: resealing them fails if one is lost, and everything else must be resealed by then.
        others = await hub.outbox.reseal() + await reseal_audit(hub.db, hub.secret)
        others += await reseal_webhooks(hub.db, hub.secret)
        return others + await hub.keys.reseal()

    count = leaf.with_hub(options, everything)
    return leaf.say(options, {"resealed": count}, f"Resealed {count}. Older keys may now be removed.")


def _described(key: SigningKey, keys: list[SigningKey], now: int) -> dict[str, str | None]:
    return {
        "kid": key.kid,
        "state": state_of(key, keys, now).value,
        "algorithm": key.algorithm,
        "createdAt": iso(key.created_at),
        "signsFrom": iso(key.signs_from),
        "publishedUntil": iso(key.published_until) if key.published_until and key.revoked_at is None else None,
    }
