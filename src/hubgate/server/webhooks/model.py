"""Webhooks as they are stored, delivery states, and the limits of both."""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct, field

from hubgate.server.clock import DAY, HOUR, MINUTE, SECOND
from hubgate.server.webhooks.options import OptionValue, default_options

DOMAINS = ("repo", "discussion")
REPO_TYPES = ("model", "dataset", "space")
OWNER_TYPES = ("user", "org")
# Existing clients also send "bucket" and "kernel"; this hub has no events about them.
WATCHABLE = (*OWNER_TYPES, *REPO_TYPES, "bucket", "kernel")

MAX_WATCHED = 100
LONGEST_SECRET = 256
# In seconds.
LONGEST_OVERLAP = 7 * 24 * 60 * 60
# A receiver that changes a repo triggers further deliveries. A chain of this length is treated as a loop and ends.
MAX_DEPTH = 5
QUOTA_WINDOW = DAY

# Concurrent requests of one webhook.
MAX_IN_FLIGHT = 8


class Sizes(NamedTuple):
    """How much of a webhook's queue is in memory: repos, untried deliveries of each, retries, and tests and replays.
    Tests use smaller values.
    """

    lanes: int = 64
    per_lane: int = 8
    retries: int = 64
    replays: int = 64


SIZES = Sizes()
BACKOFF = tuple(
    [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE] + [hours * HOUR for hours in (2, 5, 10, 14, 20, 24)]
)
JITTER = 0.2


class Pace(Struct, frozen=True):
    """Timeouts and retry intervals of deliveries. Tests use shorter values."""

    deadline_seconds: float = 15.0
    # A process is taken over when its heartbeat has not changed for this long. Longer than the deadline: a process that
    # may still start a request can end it before others take over.
    dead_after_seconds: float = 20.0
    heartbeat_seconds: float = 2.0
    backoff: tuple[int, ...] = BACKOFF
    # Short, because deliveries wait for the fan-out, but longer than any of its steps takes.
    fan_out_lease_seconds: int = 10
    # How often a delivery waits for a Space that starts: with the deadline, a little longer than a build may take.
    starts: int = 60
    # Requests in flight may end within this time when a process stops or releases shards; the rest is aborted.
    finish_seconds: float = 4.0


PACE = Pace()
# The hub respects a receiver's Retry-After up to this time.
LONGEST_WAIT = DAY
# A webhook whose attempts have all failed for this long is suspended; its owner is warned half-way.
SUSPENDED_AFTER = 5 * DAY
# The longest interval between two attempts of a delivery, with a margin. A longer time without attempts does not count
# as failing time.
LONGEST_PAUSE = 36 * HOUR
BREAKER_OPENS_AFTER = 10
# How long the circuit breaker stays open: at first, and at most.
BREAKER_FIRST, BREAKER_LONGEST = 10 * SECOND, 5 * MINUTE
# In an ordered webhook, a failed delivery blocks later deliveries of the same repo for this long.
LANE_BLOCKED_FOR = 5 * MINUTE

ENABLED, DISABLED, SUSPENDED = "enabled", "disabled", "suspended"

PENDING, RETRYING, PARKED = "pending", "retrying", "parked"
DELIVERED, FAILED, SKIPPED, CANCELLED, STORED = "delivered", "failed", "skipped", "cancelled", "stored"
ALIVE = (PENDING, RETRYING, PARKED)
STATES = (*ALIVE, DELIVERED, FAILED, SKIPPED, CANCELLED, STORED)
# How an app got its token: by a user's consent, or by its organization's token exchange; or a fine-grained personal
# token, which is limited in the same way.
CONSENT, EXCHANGE, TOKEN = "consent", "exchange", "token"
# Values of `Webhook.taken_over`: an app took over the owner's webhook, and the URL was set by the owner or by the app.
OWNERS_URL, APPS_URL = 1, 2
# The repo id and the owner id in a test delivery about an invented repo.
NO_ID = "0" * 24
# Reasons for skipping a delivery.
QUOTA, LOOP, FORBIDDEN = "quota", "loop", "forbidden"


class Watch(Struct, frozen=True):
    type: str
    # The name in the request, or the current name of the target.
    name: str
    target_id: str | None = None

    @property
    def key(self) -> str:
        return self.name.lower()


class Grant(Struct, frozen=True):
    """The user and the scopes with which an app or a fine-grained token manages a webhook."""

    client_id: str
    # CONSENT, EXCHANGE or TOKEN.
    kind: str
    user_id: str
    scopes: str

    @property
    def noun(self) -> str:
        return "token" if self.kind == TOKEN else "app"

    def manages(self, webhook: "Webhook") -> bool:
        """Whether the webhook belongs to the same app, user and kind of grant, regardless of scopes."""
        return (self.client_id, self.kind, self.user_id) == (webhook.client_id, webhook.grant_kind, webhook.granted_by)


class Webhook(Struct, frozen=True):
    """A row of the table `webhooks`. `management/store.py` derives its columns from the fields."""

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
    state: str
    failing_since: int | None
    closed_until: int
    last_trigger_at: int | None
    suspended_at: int | None
    created_at: int
    # The grant of the app that created the webhook or took it over; all None without an app.
    client_id: str | None = None
    grant_kind: str | None = None
    granted_by: str | None = None
    granted_scopes: str | None = None
    # 0 if an app created the webhook or no app manages it; otherwise OWNERS_URL or APPS_URL.
    taken_over: int = 0
    # Incremented by every change of the settings.
    version: int = 1
    # The values of `OPTIONS` by name, each of which has a column.
    options: Mapping[str, OptionValue] = field(default_factory=default_options)

    @property
    def grant(self) -> Grant | None:
        if self.client_id is None or self.grant_kind is None or self.granted_by is None:
            return None
        return Grant(self.client_id, self.grant_kind, self.granted_by, self.granted_scopes or "")

    def taken_over_after_change(self, url: str | None) -> int:
        """The value of `taken_over` after an app changes the webhook and sets `url`; 0 if an app created it."""
        if self.client_id is not None and not self.taken_over:
            return 0
        return APPS_URL if url != self.url else self.taken_over or OWNERS_URL

    def is_reclaimed_with(self, url: str | None) -> bool:
        """Whether a change by the owner that results in `url` returns the webhook to the owner. The URL of an app must
        be replaced first: otherwise the app would receive all events that the owner may read (attack W41).
        """
        return self.taken_over == OWNERS_URL or (self.taken_over == APPS_URL and url != self.url)

    @property
    def app_noun(self) -> str:
        """The noun for texts about the app or the fine-grained token that manages the webhook."""
        return self.grant.noun if self.grant else "app"

    @property
    def grant_remedy(self) -> str:
        """What the owner can do if the grant has ended, at the beginning of a sentence."""
        return "Refresh the token if it has expired" if self.app_noun == "token" else "Allow the app again"

    @property
    def app_verb(self) -> str:
        """A verb for texts: the app "created" the webhook, or "changed" a webhook of the owner."""
        return "changed" if self.taken_over else "created"

    @property
    def host(self) -> str:
        """The host and port of the URL; empty for a pull webhook."""
        return urlsplit(self.url).netloc if self.url else ""
