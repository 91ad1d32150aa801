"""Tables of webhooks, watches, deliveries and attempts."""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, Table, Text, text

from hubgate.server.storage.schema.base import metadata, owner

_GRANTED = text("client_id IS NOT NULL")
_BACKLOG = text("skip_through > 0 OR requeue_since IS NOT NULL")
_FAILING = text("failing_since IS NOT NULL")
_RUNNING = text("state = 'running'")

# Webhooks with their settings, quotas and delivery state (webhooks/management/).
webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Text, primary_key=True),
    # Exactly one of the two is the owner.
    owner("users", "user_id", nullable=True),
    owner("organizations", "org_id", nullable=True),
    # Null if events are only pulled.
    Column("url", Text),
    # "repo" and "discussion", separated by a space.
    Column("domains", Text, nullable=False),
    # Sealed. During a rotation both secrets sign until the old one expires.
    Column("secret", LargeBinary),
    Column("old_secret", LargeBinary),
    Column("old_secret_until", BigInteger),
    # Ed25519 key pair of the webhook, replaced only when an app takes the webhook over. The private key is sealed.
    Column("private_key", LargeBinary, nullable=False),
    Column("public_key", Text, nullable=False),
    Column("ordered", BigInteger, nullable=False),
    # "enabled", "disabled" or "suspended".
    Column("state", Text, nullable=False),
    # The number of the latest delivery; numbers are consecutive.
    Column("last_seq", BigInteger, nullable=False),
    # The start of the quota window, and the triggers since then.
    Column("quota_from", BigInteger, nullable=False),
    Column("quota_used", BigInteger, nullable=False),
    # When the current series of failed attempts began, moved forward by long pauses; when the owner was warned.
    Column("failing_since", BigInteger),
    Column("warned_at", BigInteger),
    # When the webhook was suspended; null if it is not.
    Column("suspended_at", BigInteger),
    # The circuit breaker: consecutive failures, and the time until which it is open (nothing is sent).
    Column("failures", BigInteger, nullable=False),
    Column("closed_until", BigInteger, nullable=False),
    Column("last_trigger_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    # When an attempt last failed.
    Column("failed_at", BigInteger),
    # Triggers in the same window that guests of the watched repos caused. They do not count towards `quota_used`.
    Column("guest_quota_used", BigInteger, nullable=False, server_default="0"),
    # The app that created the webhook or took it over, and the kind of its grant, "consent" or "exchange"; null
    # without an app. Not a foreign key: when the grant is revoked, the webhook is suspended.
    Column("client_id", Text),
    Column("grant_kind", Text),
    Column("granted_by", Text),
    Column("granted_scopes", Text),
    # The scopes with which the grant could read private repos at the last check (webhooks/permissions/grants.py).
    Column("reach", Text),
    # When the app created or last changed the webhook: earlier revocations by an organization do not apply to it.
    Column("granted_at", BigInteger),
    # For a token exchange: when the membership, the plan and the privilege that the grant depends on began.
    Column("granted_under", Text),
    # 0 if an app created the webhook. If its owner created it and an app took it over: 1 while the owner's URL is
    # unchanged, 2 once an app has set another.
    Column("taken_over", BigInteger, nullable=False, server_default="0"),
    # Incremented by every change of the settings, to detect concurrent changes.
    Column("version", BigInteger, nullable=False, server_default="1"),
    # Incremented when failures and circuit breaker are reset: the process that sends must not store older ones.
    Column("resets", BigInteger, nullable=False, server_default="0"),
    # A large backlog is skipped, or queued again, in batches (webhooks/management/backlogs.py): deliveries up to this
    # number, for this reason; or those missed since this time. Until then nothing is sent that was there before.
    Column("skip_through", BigInteger, nullable=False, server_default="0"),
    Column("skip_reason", Text),
    Column("requeue_since", BigInteger),
    Index("ix_webhooks_backlogs", "id", sqlite_where=_BACKLOG, postgresql_where=_BACKLOG),
    Index("ix_webhooks_failing", "failing_since", sqlite_where=_FAILING, postgresql_where=_FAILING),
    Index("ix_webhooks_granted", "id", sqlite_where=_GRANTED, postgresql_where=_GRANTED),
    Index("ix_webhooks_granted_by", "granted_by", "client_id", sqlite_where=_GRANTED, postgresql_where=_GRANTED),
    Index(None, "user_id"),
    Index(None, "org_id"),
)

# The watches of a webhook. A name that does not exist yet is bound permanently to the first account or repo to get it.
watches = Table(
    "watches",
    metadata,
    owner("webhooks", "webhook_id", key=True),
    # "user", "org", "model", "dataset" or "space".
    Column("type", Text, primary_key=True),
    # Lower case.
    Column("key", Text, primary_key=True),
    Column("name", Text, nullable=False),
    # The id of the user, organization or repo; null until it exists, empty once it no longer has the name.
    Column("target_id", Text),
    # The position in the list that the user gave.
    Column("position", BigInteger, nullable=False),
    # When the watch was added; null means when its webhook was created.
    Column("made_at", BigInteger),
    Index(None, "target_id", "webhook_id"),
    Index(None, "key", "target_id"),
    sqlite_with_rowid=False,
)

_ALIVE = "state IN ('pending', 'retrying', 'parked')"
# What waits, by webhook, in three windows (webhooks/delivering/windows_store.py): the lanes of repos, tests and
# replays, and retries. A delivery that succeeds at once is only ever in the first.
_UNTRIED = text(f"{_ALIVE} AND attempts = 0 AND replay_of = ''")
_REPLAYS = text(f"{_ALIVE} AND attempts = 0 AND replay_of <> ''")
_RETRIES = text(f"{_ALIVE} AND attempts > 0")

# Deliveries: one event for one webhook (webhooks/delivering/).
deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Text, primary_key=True),
    owner("webhooks", "webhook_id"),
    Column("event_id", Text, nullable=False),
    # The delivery that this one replays, so that a replay is not rejected as a duplicate; empty for the original.
    Column("replay_of", Text, nullable=False),
    # Consecutive in each webhook: the cursor for pulling.
    Column("seq", BigInteger, nullable=False),
    # The lane, and the position in it.
    Column("repo_id", Text, nullable=False),
    Column("repo_seq", BigInteger, nullable=False),
    # Copied from the event, for lists and filters.
    Column("repo_type", Text, nullable=False),
    Column("repo_name", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("depth", BigInteger, nullable=False),
    # The body of a test; null for other deliveries, which send the event's body.
    Column("body", LargeBinary),
    Column("is_test", BigInteger, nullable=False),
    # "pending", "retrying", "parked", "delivered", "failed", "skipped", "cancelled" or "stored".
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    # The HTTP status of the last attempt; null if there was no response.
    Column("status", BigInteger),
    Column("due_at", BigInteger),
    # When the first attempt ended. If it failed, the delivery blocks an ordered lane for LANE_BLOCKED_FOR from then on.
    Column("tried_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    # The first attempt. The table `attempts` has the others, and for deliveries from before migration 0024 all of them.
    Column("first_at", BigInteger),
    Column("first_url", Text),
    Column("signature", Text),
    Column("first_status", BigInteger),
    Column("duration_ms", BigInteger),
    Column("error", Text),
    Column("response", LargeBinary),
    Index("uq_deliveries_event_id_webhook_id_replay_of", "event_id", "webhook_id", "replay_of", unique=True),
    Index("uq_deliveries_webhook_id_seq", "webhook_id", "seq", unique=True),
    Index(
        "ix_deliveries_untried", "webhook_id", "repo_id", "repo_seq", sqlite_where=_UNTRIED, postgresql_where=_UNTRIED
    ),
    Index("ix_deliveries_replays", "webhook_id", "due_at", "seq", sqlite_where=_REPLAYS, postgresql_where=_REPLAYS),
    Index("ix_deliveries_retries", "webhook_id", "due_at", "seq", sqlite_where=_RETRIES, postgresql_where=_RETRIES),
)

# The attempts of a delivery from the second on, with the responses.
attempts = Table(
    "attempts",
    metadata,
    owner("deliveries", "delivery_id", key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    # The URL and the signature as sent; the webhook's settings may have changed since then.
    Column("url", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("status", BigInteger),
    Column("duration_ms", BigInteger, nullable=False),
    # The error text if there was no response. It is the same for all errors that could reveal an internal network
    # (attack W18).
    Column("error", Text, nullable=False),
    Column("response", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

# Replays of many deliveries (webhooks/replaying/).
replays = Table(
    "replays",
    metadata,
    Column("id", Text, primary_key=True),
    owner("webhooks", "webhook_id"),
    # The selected deliveries: those created since a time that are in one of these states, separated by spaces; or, if
    # `picked` is set, these ids, as JSON.
    Column("since", BigInteger, nullable=False),
    Column("states", Text, nullable=False),
    Column("picked", Text),
    # The repos that the app which started the replay may see, as JSON; null without an app.
    Column("visible", Text),
    # The maximum number of requests per second.
    Column("rate", BigInteger, nullable=False),
    # "running", "done" or "cancelled".
    Column("state", Text, nullable=False),
    # Selected deliveries; those queued so far; and, of a replay that has ended, those sent.
    Column("total", BigInteger, nullable=False),
    Column("queued", BigInteger, nullable=False),
    Column("done", BigInteger, nullable=False),
    # Progress: the number of the last delivery that was considered, and of the last to consider. For picked deliveries
    # the index in the list.
    Column("position", BigInteger, nullable=False),
    Column("last_position", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Index("ix_replays_running", "webhook_id", "id", sqlite_where=_RUNNING, postgresql_where=_RUNNING),
    Index(None, "webhook_id", "id"),
)

_DUE = text("next_at IS NOT NULL")
# Deliveries of a webhook by the hour of their creation, for charts (webhooks/activity/rollup.py).
delivery_hours = Table(
    "delivery_hours",
    metadata,
    owner("webhooks", "webhook_id", key=True),
    # The start of the hour.
    Column("hour", BigInteger, primary_key=True, autoincrement=False),
    # The numbers of its first and its last delivery. Numbers between them may belong to other hours.
    Column("first_seq", BigInteger, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    # The sums below are computed again at this time; null if they are final.
    Column("next_at", BigInteger),
    Column("total", BigInteger, nullable=False, server_default="0"),
    Column("delivered", BigInteger, nullable=False, server_default="0"),
    # After the last attempt, and before another attempt.
    Column("failed", BigInteger, nullable=False, server_default="0"),
    Column("retrying", BigInteger, nullable=False, server_default="0"),
    # Not tried yet.
    Column("waiting", BigInteger, nullable=False, server_default="0"),
    # Including cancelled ones.
    Column("skipped", BigInteger, nullable=False, server_default="0"),
    # First attempts with a response, counted for each range of durations (webhooks/activity/durations.py), or null.
    Column("durations", Text),
    Index(None, "webhook_id", "last_seq"),
    Index("ix_delivery_hours_due", "next_at", sqlite_where=_DUE, postgresql_where=_DUE),
    sqlite_with_rowid=False,
)

# The running processes that send deliveries (webhooks/shards/ownership.py).
senders = Table(
    "senders",
    metadata,
    Column("id", Text, primary_key=True),
    # Changed every two seconds.
    Column("heartbeat", BigInteger, nullable=False),
    # Lock files tell about processes of the same machine only.
    Column("machine", Text, nullable=False),
    # Attempts in the last minute.
    Column("attempts", BigInteger, nullable=False, server_default="0"),
)

# The 256 shards of webhooks, and the process that sends for each; null for a shard without one.
shards = Table(
    "shards",
    metadata,
    Column("shard", BigInteger, primary_key=True, autoincrement=False),
    Column("sender_id", Text),
)

# Webhooks that the owner of their shard must read again.
wakes = Table(
    "wakes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("shard", BigInteger, nullable=False),
    Column("webhook_id", Text, nullable=False),
)
