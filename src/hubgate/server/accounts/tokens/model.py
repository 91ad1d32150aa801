"""The metadata of a personal token, without its secret."""

from collections.abc import Sequence
from typing import Any

import msgspec

from hubgate.server.accounts.roles import TOKEN_ROLES, TokenRole
from hubgate.server.clock import MINUTE
from hubgate.server.errors import Unprocessable

USE_RECORDED_EVERY = 5 * MINUTE
LONGEST_NAME = 96
MAX_TOKENS_PER_USER = 500


class PersonalToken(msgspec.Struct, frozen=True):
    """The metadata of a personal token. The fields are in the order of `store.COLUMNS`."""

    id: str
    user_id: str
    name: str
    role: TokenRole
    last_four: str
    created_at: int
    last_used_at: int | None

    @classmethod
    def of(cls, values: Sequence[Any]) -> "PersonalToken":
        token_id, user_id, name, role, *rest = values
        return cls(token_id, user_id, name, TOKEN_ROLES[role], *rest)


def check_token_name(text: str) -> str:
    name = " ".join(text.split())
    if not 1 <= len(name) <= LONGEST_NAME:
        raise Unprocessable(f"A token's name must have 1 to {LONGEST_NAME} characters.")
    if not name.isprintable():
        raise Unprocessable("A token's name cannot contain hidden characters.")
    return name
