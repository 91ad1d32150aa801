"""Exchanged tokens as JSON, and the filters that select them."""

import ipaddress
from collections.abc import Mapping

import msgspec

from hubgate.server.accounts.context import Accounts
from hubgate.server.clock import iso
from hubgate.server.errors import FieldErrors, Unprocessable
from hubgate.server.oauth.exchange.model import TokenFilter
from hubgate.server.oauth.exchange.store import ActiveToken
from hubgate.server.scopes import parse_scopes
from hubgate.server.web.moments import first_instant, last_instant
from hubgate.server.web.named import user_named


class ExchangedToken(msgspec.Struct, rename="camel"):
    # Identifies the token for revocation; reveals nothing of its secret.
    id: str
    client_id: str
    # Names, not ids.
    app: str
    organization: str
    user: str
    scopes: list[str]
    created_at: str
    expires_at: str


def described(alive: ActiveToken) -> ExchangedToken:
    return ExchangedToken(
        id=alive.id,
        client_id=alive.client_id,
        app=alive.app_name,
        organization=alive.organization,
        user=alive.user_name,
        scopes=list(parse_scopes(alive.scopes)),
        created_at=iso(alive.created_at),
        expires_at=iso(alive.expires_at),
    )


async def which_of(accounts: Accounts, given: Mapping[str, str]) -> TokenFilter:
    """Parse the optional filters `user`, `since` and `until`."""
    since, until = _time_span(given)
    user = await user_named(accounts, given["user"]) if "user" in given else None
    return TokenFilter(user_id=user.id if user else None, since=since, until=until)


def _time_span(given: Mapping[str, str]) -> tuple[int | None, int | None]:
    found: dict[str, int] = {}
    errors: dict[str, str] = {}
    for name, parse in (("since", first_instant), ("until", last_instant)):
        if name in given:
            try:
                found[name] = parse(given[name])
            except Unprocessable as error:
                errors[name] = error.message
    since, until = found.get("since"), found.get("until")
    if since is not None and until is not None and since > until:
        errors["until"] = "The end is before the start."
    if errors:
        raise FieldErrors(errors)
    return since, until


def check_ip(given: str) -> str:
    try:
        return str(ipaddress.ip_address(given.strip()))
    except ValueError:
        raise Unprocessable(f"{given[:60]} is no address such as 203.0.113.7.") from None
