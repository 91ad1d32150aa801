"""`hubgate admin token create USER --role R [--name N] [--expires E] [--allow PLACE=SCOPES]... | list USER | revoke
USER ID`.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from hubgate.cli.admin import common
from hubgate.server.access.identity import Identity
from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import TokenRole
from hubgate.server.accounts.tokens import personal
from hubgate.server.accounts.tokens.limits import NewLimit, NewLimits, organizations, own_account
from hubgate.server.accounts.tokens.model import DEFAULT_LIFETIME, LIFETIMES, NEVER, ON_DATE, parse_expiry
from hubgate.server.accounts.tokens.wire import token_info
from hubgate.server.errors import NotFound, Unprocessable
from hubgate.server.resources import Hub
from hubgate.server.web.token_repos import repo_limits

# Named in the mail to the user as the place where the token was created.
_CREATED_FROM = "the operator's command line"


def configure(subjects: Any) -> None:
    commands = common.group(subjects, "token", "personal tokens, for scripts and git")
    create = common.add(commands, "create", "create a token and print it once", _create)
    create.add_argument("user", metavar="USER")
    create.add_argument("--role", required=True, choices=[role.value for role in TokenRole])
    create.add_argument("--name", default="created by the operator", metavar="N")
    create.add_argument(
        "--expires",
        metavar="E",
        help="7, 30 or 90 days, a date such as 2030-12-31, or never; by default 90 if fineGrained, otherwise never",
    )
    create.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="PLACE=SCOPES",
        help="for fineGrained: the user, an organization, a repo (datasets/acme/data) or everywhere, and its scopes",
    )
    common.add(commands, "list", "list a user's tokens, newest first", _list).add_argument("user", metavar="USER")
    revoke = common.add(commands, "revoke", "revoke a token immediately", _revoke)
    revoke.add_argument("user", metavar="USER")
    revoke.add_argument("id", metavar="ID")


def _create(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, Any]:
        user, role = await common.find_enabled_user(hub, options.user), TokenRole(options.role)
        if options.allow and role is not TokenRole.FINE_GRAINED:
            raise Unprocessable("--allow needs --role fineGrained.")
        text, token = await personal.create(
            hub.accounts,
            user,
            options.name,
            role,
            _CREATED_FROM,
            expires_at=_expiry(options.expires, role, hub.clock()),
            limits=await _limits(hub, user, options.allow),
        )
        return {"token": text, "user": user.name, **msgspec.to_builtins(token_info(token))}

    created = common.with_hub(options, work)
    return common.print_result(
        options, created, f"{created['token']}\n{common.SHOWN_ONCE}" if sys.stdout.isatty() else created["token"]
    )


def _expiry(text: str | None, role: TokenRole, now: int) -> int | None:
    choice = text or (DEFAULT_LIFETIME if role is TokenRole.FINE_GRAINED else NEVER)
    return parse_expiry(choice if choice in (*LIFETIMES, NEVER) else ON_DATE, choice, now)


async def _limits(hub: Hub, user: User, allowed: Sequence[str]) -> NewLimits:
    person = await account_store.person(hub.db, user.id)
    memberships = person.memberships if person else ()
    identity = Identity.session(user.id, person.roles if person else {})
    everywhere, places = frozenset[str](), list[NewLimit]()
    for text in allowed:
        place, _, names = text.partition("=")
        scopes = frozenset(filter(None, names.split(",")))
        org_ids = [m.organization.id for m in memberships if m.organization.name.lower() == place.lower()]
        if place == "everywhere":
            everywhere |= scopes
        elif "/" in place:
            places += await repo_limits(hub.repos, identity, [place], scopes)
        elif place.lower() == user.name.lower():
            places.append(own_account(user, scopes))
        elif org_ids:
            places += organizations(memberships, org_ids, scopes)
        else:
            raise NotFound(f"{user.name} is not a member of {place}.")
    return NewLimits(everywhere, tuple(places))


def _list(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> list[dict[str, Any]]:
        user = await common.find_user(hub, options.user)
        return [msgspec.to_builtins(token_info(token)) for token in await personal.of_user(hub.accounts, user.id)]

    rows = common.with_hub(options, work)
    cells = [
        [
            r["id"],
            r["name"],
            r["role"],
            r["lastFour"],
            *(_day(r[key]) for key in ("createdAt", "expiresAt", "lastUsedAt")),
        ]
        for r in rows
    ]
    headings = ["ID", "NAME", "ROLE", "LAST 4", "CREATED", "EXPIRES", "LAST USED"]
    return common.print_rows(options, rows, headings, cells)


def _day(moment: str | None) -> str:
    return (moment or "never")[:10]


def _revoke(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> None:
        user = await common.find_user(hub, options.user)
        await personal.revoke(hub.accounts, user.id, options.id)

    common.with_hub(options, work)
    return common.print_result(options, {"revoked": options.id}, f"Revoked {options.id}.")
