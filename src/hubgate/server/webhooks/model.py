"""A webhook and its deliveries as they are stored, and the numbers that rule them."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from hubgate.server.clock import DAY, HOUR, MINUTE, SECOND

DOMAINS = ("repo", "discussion")
REPO_TYPES = ("model", "dataset", "space")
OWNER_TYPES = ("user", "org")
# Existing clients know two more kinds of repos; no event is ever about them here.
WATCHABLE = (*OWNER_TYPES, *REPO_TYPES, "bucket", "kernel")

MOST_WATCHED = 100
LONGEST_SECRET = 256
LONGEST_OVERLAP = 7 * 24 * 60 * 60
DEEPEST = 5
QUOTA_WINDOW = DAY

PER_WEBHOOK = 8
BACKOFF = tuple(
    [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE] + [hours * HOUR for hours in (2, 5, 10, 14, 20, 24)]
)
JITTER = 0.2


@dataclass(frozen=True)
class Pace:
    """How long things take. Only tests are in more of a hurry."""

    deadline_seconds: float = 15.0
    # Twice the deadline: whoever begins in time also ends in time.
    lease: int = 30 * SECOND
    backoff: tuple[int, ...] = BACKOFF


PACE = Pace()
LONGEST_WAIT = DAY
# A webhook all of whose tries have failed for this long is suspended; half-way its owner is warned.
SUSPENDED_AFTER = 5 * DAY
# Between two tries of one delivery, with some room: more than that without any counts as no time of failing.
LONGEST_PAUSE = 36 * HOUR
BREAKS_AFTER = 10
BREAK_FIRST, BREAK_LONGEST = 10 * SECOND, 5 * MINUTE
# An ordered webhook waits this long for what failed before.
HOLDS_LANE = 5 * MINUTE

ENABLED, DISABLED, SUSPENDED = "enabled", "disabled", "suspended"

PENDING, RETRYING, PARKED = "pending", "retrying", "parked"
DELIVERED, FAILED, SKIPPED, CANCELLED, STORED = "delivered", "failed", "skipped", "cancelled", "stored"
ALIVE = (PENDING, RETRYING, PARKED)
STATES = (*ALIVE, DELIVERED, FAILED, SKIPPED, CANCELLED, STORED)
# What an app's token comes from: a user's consent, or its organization's token exchange.
CONSENT, EXCHANGE = "consent", "exchange"
# The repo and the owner of a test that tells of nothing real.
NOBODY = "0" * 24
# Why a delivery was skipped.
QUOTA, LOOP, FORBIDDEN = "quota", "loop", "forbidden"


@dataclass(frozen=True, slots=True)
class Watch:
    type: str
    # As it was given, or as it is called now.
    name: str
    target_id: str | None = None

    @property
    def key(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Grant:
    """On whose behalf an app creates a webhook, and with which scopes. `kind` is "consent" or "exchange"."""

    client_id: str
    kind: str
    user_id: str
    scopes: str

    def created(self, webhook: "Webhook") -> bool:
        """Whether this app created it for this user, with whichever scopes."""
        return (self.client_id, self.kind, self.user_id) == (webhook.client_id, webhook.grant_kind, webhook.granted_by)


@dataclass(frozen=True, slots=True)
class Webhook:
    """The order of the fields is that of `managing/store.COLUMNS`."""

    id: str
    user_id: str | None
    org_id: str | None
    url: str | None
    domains: str
    secret: bytes | None
    old_secret: bytes | None
    old_secret_until: int | None
    private_key: bytes
    public_key: str
    ordered: int
    state: str
    failing_since: int | None
    closed_until: int
    last_trigger_at: int | None
    suspended_at: int | None
    created_at: int
    # Of the app that created it; all None where its owner did without one.
    client_id: str | None = None
    grant_kind: str | None = None
    granted_by: str | None = None
    granted_scopes: str | None = None

    @property
    def grant(self) -> Grant | None:
        if self.client_id is None or self.grant_kind is None or self.granted_by is None:
            return None
        return Grant(self.client_id, self.grant_kind, self.granted_by, self.granted_scopes or "")

    @property
    def host(self) -> str:
        """Where it sends to, whole, with the port; empty where events are only fetched."""
        return urlsplit(self.url).netloc if self.url else ""
