"""A device that waits for its user, as it is stored."""

from dataclasses import dataclass

from hubgate.server.clock import HOUR, SECOND

LASTS_SECONDS = 900
LASTS = LASTS_SECONDS * SECOND
# After it expired or was decided, to tell a late device what became of it.
REMEMBERED = HOUR
INTERVAL = 5
# Added for good to the interval of a device that asks too often (RFC 8628, section 3.5).
SLOWER_BY = 5
# A device counts its seconds from our answer, and we from its question.
TOLERANCE = SECOND // 2

PENDING, APPROVED, DENIED, CONSUMED = "pending", "approved", "denied", "consumed"


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """The order of the fields is that of the columns."""

    key: bytes
    user_code: bytes
    client_id: str
    # The same for a registered app, which takes its codes along when it goes.
    app_id: str | None
    scopes: str
    state: str
    # Who decided, what for, and when they had signed in.
    user_id: str | None
    consent_id: str | None
    auth_time: int | None
    # Seconds.
    interval: int
    polled_at: int | None
    # Where it was started, for the user to compare.
    ip: str
    user_agent: str
    created_at: int
    expires_at: int
    # The servers it asks a token for; empty for this hub.
    resources: str

    def is_too_soon(self, now: int) -> bool:
        """The first question never is."""
        return self.polled_at is not None and now - self.polled_at < self.interval * SECOND - TOLERANCE
