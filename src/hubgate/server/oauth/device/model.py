"""A device code as stored, with the limits of the device flow."""

from msgspec import Struct

from hubgate.server.clock import HOUR, SECOND

LIFETIME_SECONDS = 900
LIFETIME = LIFETIME_SECONDS * SECOND
# Retention after expiry, to answer a late poll with the outcome.
RETENTION = HOUR
INTERVAL_SECONDS = 5
# Added permanently to the interval of a device that polls too often (RFC 8628, section 3.5).
SLOW_DOWN_SECONDS = 5
# Network delays vary, so a poll that was sent on time may be received this much too early.
TOLERANCE = SECOND // 2

PENDING, APPROVED, DENIED, CONSUMED = "pending", "approved", "denied", "consumed"


class Decision(Struct, frozen=True):
    """The user's decision about a device."""

    state: str
    user_id: str
    consent_id: str | None
    scopes: str
    # Named as in tokens: the registered server of a URI may depend on the user.
    resources: str
    auth_time: int


class DeviceCode(Struct, frozen=True):
    """A device code. The fields are in the order of the columns."""

    key: bytes
    # The MAC of the user code (`user_code_mac`), not the code itself.
    user_code: bytes
    client_id: str
    # Same as client_id for a registered app, whose deletion cascades to its codes; else None.
    app_id: str | None
    scopes: str
    state: str
    # The user who decided, the consent, and when the user signed in.
    user_id: str | None
    consent_id: str | None
    auth_time: int | None
    # Seconds.
    interval: int
    polled_at: int | None
    # Where the flow was started, shown to the user for comparison.
    ip: str
    user_agent: str
    created_at: int
    expires_at: int
    # The servers the token is requested for; empty for this hub.
    resources: str

    def is_too_soon(self, now: int) -> bool:
        """Whether a poll violates the interval; the first poll never does."""
        return self.polled_at is not None and now - self.polled_at < self.interval * SECOND - TOLERANCE
