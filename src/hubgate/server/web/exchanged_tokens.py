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
from hubgate.server.web.account_paths import user_named
from hubgate.server.web.timestamps import first_instant, last_instant


class ExchangedToken(msgspec.Struct, rename="camel"):
    # Identifies the token for revocation; does not reveal the secret.
    id: str
    client_id: str
    # Names, not ids.
    app: str
    organization: str
    user: str
    scopes: list[str]
    created_at: str
    expires_at: str


def describe(token: ActiveToken) -> ExchangedToken:
    return ExchangedToken(
        id=token.id,
        client_id=token.client_id,
        app=token.app_name,
        organization=token.organization,
        user=token.user_name,
        scopes=list(parse_scopes(token.scopes)),
        created_at=iso(token.created_at),
        expires_at=iso(token.expires_at),
    )


async def parse_filters(accounts: Accounts, fields: Mapping[str, str]) -> TokenFilter:
    """Parse the optional filters `user`, `since` and `until`."""
    since, until = _time_span(fields)
    user = await user_named(accounts, fields["user"]) if "user" in fields else None
    return TokenFilter(user_id=user.id if user else None, since=since, until=until)


def _time_span(fields: Mapping[str, str]) -> tuple[int | None, int | None]:
    found: dict[str, int] = {}
    errors: dict[str, str] = {}
    for name, parse in (("since", first_instant), ("until", last_instant)):
        if name in fields:
            try:
                found[name] = parse(fields[name])
            except Unprocessable as error:
                errors[name] = error.message
    since, until = found.get("since"), found.get("until")
    if since is not None and until is not None and since > until:
        errors["until"] = "The end is before the start."
    if errors:
        raise FieldErrors(errors)
    return since, until


def parse_ip(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        raise Unprocessable(f"{text[:60]} is not an IP address such as 203.0.113.7.") from None
