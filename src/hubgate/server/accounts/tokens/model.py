"""The metadata of a personal token, without its secret, and when it expires."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec

from hubgate.server.accounts.roles import TOKEN_ROLES, TokenRole
from hubgate.server.accounts.tokens.limits import TokenLimit
from hubgate.server.clock import DAY, MINUTE, SECOND
from hubgate.server.errors import FieldErrors, Unprocessable
from hubgate.server.scopes import parse_scopes

USE_RECORDED_EVERY = 5 * MINUTE
LONGEST_NAME = 96
MAX_TOKENS_PER_USER = 500
# Of all fine-grained tokens together, also expired ones: a list of tokens shows the places of each.
MAX_PLACES_PER_USER = 5000

# The choices for the expiry of a token; the first are days.
LIFETIMES, ON_DATE, NEVER = ("7", "30", "90"), "date", "never"
DEFAULT_LIFETIME = "90"
LONGEST_LIFETIME_DAYS = 3653
# The mail about the coming expiry is sent this long before. A token with a shorter lifetime gets none.
NOTICE = 7 * DAY
# Expired tokens are listed this long, and can be refreshed.
EXPIRED_RETENTION = 30 * DAY


class PersonalToken(msgspec.Struct, frozen=True):
    """The metadata of a personal token. The fields are in the order of `store.COLUMNS`."""

    id: str
    user_id: str
    name: str
    role: TokenRole
    last_four: str
    created_at: int
    last_used_at: int | None = None
    last_used_ip: str | None = None
    # None if the token never expires.
    expires_at: int | None = None
    # The scopes of a fine-grained token that apply everywhere.
    scopes: str = ""
    # Not a column: the places that a fine-grained token reaches.
    limits: tuple[TokenLimit, ...] = ()

    @property
    def everywhere(self) -> tuple[str, ...]:
        return parse_scopes(self.scopes)

    @property
    def is_fine_grained(self) -> bool:
        return self.role is TokenRole.FINE_GRAINED

    def is_expired(self, now: int) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    def expiry_after_refresh(self, now: int) -> int | None:
        """A refreshed token gets the lifetime that it was created with."""
        return None if self.expires_at is None else now + self.expires_at - self.created_at

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


def parse_expiry(choice: str, day: str, now: int) -> int | None:
    """The expiry for a choice in a form or on the command line: a number of days, "date" with a `day` such as
    2030-12-31, or "never". A token works until the end of that day in UTC.
    """
    if choice == NEVER:
        return None
    if choice in LIFETIMES:
        return now + int(choice) * DAY
    if choice != ON_DATE:
        raise FieldErrors({"expires": "Choose when the token expires."})
    today = datetime.fromtimestamp(now // SECOND, UTC).date()
    try:
        last = date.fromisoformat(day.strip())
    except ValueError:
        raise FieldErrors({"expires_on": "Enter a date such as 2030-12-31."}) from None
    if not today <= last <= today + timedelta(days=LONGEST_LIFETIME_DAYS):
        raise FieldErrors({"expires_on": "Enter a date from today on, within the next ten years."})
    end = datetime(last.year, last.month, last.day, tzinfo=UTC) + timedelta(days=1)
    return int(end.timestamp()) * SECOND
