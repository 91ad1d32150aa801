"""An initial access token (RFC 7591, section 1.2), without its text."""

from msgspec import Struct


class InitialToken(Struct, frozen=True):
    """The fields are in the order of the columns."""

    id: str
    last_four: str
    created_at: int
    last_used_at: int | None
    # How many apps were registered with it.
    registrations: int
