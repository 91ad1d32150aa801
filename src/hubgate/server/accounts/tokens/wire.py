"""The wire format of a personal token, for the API, the command line and a user's export, without its secret."""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.accounts.tokens.model import PersonalToken
from hubgate.server.clock import iso, iso_or_none


class Entity(msgspec.Struct):
    """A place that a fine-grained token reaches."""

    id: str = msgspec.field(name="_id")
    name: str
    type: Literal["user", "org", "model", "dataset", "space"]


class Scoped(msgspec.Struct):
    entity: Entity
    permissions: list[str]


class FineGrained(msgspec.Struct, rename="camel"):
    """The limits of a fine-grained token, as existing clients read them."""

    scoped: list[Scoped]
    # The scopes that apply everywhere.
    everywhere: list[str] = msgspec.field(name="global")
    can_read_gated_repos: bool


class TokenInfo(msgspec.Struct, rename="camel"):
    id: str
    name: str
    role: Literal["read", "write", "fineGrained"]
    last_four: str
    created_at: str
    last_used_at: str | None
    last_used_ip: str | None
    expires_at: str | None
    fine_grained: FineGrained | UnsetType = UNSET


def token_info(token: PersonalToken) -> TokenInfo:
    return TokenInfo(
        id=token.id,
        name=token.name,
        role=token.role.value,
        last_four=token.last_four,
        created_at=iso(token.created_at),
        last_used_at=iso_or_none(token.last_used_at),
        last_used_ip=token.last_used_ip,
        expires_at=iso_or_none(token.expires_at),
        fine_grained=fine_grained(token),
    )


def fine_grained(token: PersonalToken) -> FineGrained | UnsetType:
    """The limits of a token; UNSET if it is not fine-grained."""
    if not token.is_fine_grained:
        return UNSET
    scoped = [
        Scoped(msgspec.convert({"_id": place.target_id, "name": place.name, "type": place.type}, Entity), [*scopes])
        for place in token.limits
        if (scopes := place.scope_names)
    ]
    everywhere = list(token.everywhere)
    return FineGrained(scoped, everywhere, "gated-repos" in everywhere)
