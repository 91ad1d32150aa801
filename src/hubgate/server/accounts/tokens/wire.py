"""The wire format of a personal token, for the API, the command line and a user's export, without its secret."""

from typing import Literal

import msgspec

from hubgate.server.accounts.tokens.model import PersonalToken
from hubgate.server.clock import iso, iso_or_none


class TokenInfo(msgspec.Struct, rename="camel"):
    id: str
    name: str
    role: Literal["read", "write"]
    last_four: str
    created_at: str
    last_used_at: str | None


def token_info(token: PersonalToken) -> TokenInfo:
    return TokenInfo(
        id=token.id,
        name=token.name,
        role=token.role.value,
        last_four=token.last_four,
        created_at=iso(token.created_at),
        last_used_at=iso_or_none(token.last_used_at),
    )
