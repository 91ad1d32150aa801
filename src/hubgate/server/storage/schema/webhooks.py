"""Webhooks, what they watch, and every delivery with its tries."""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, Table, Text, text

from hubgate.server.storage.schema.base import metadata, owner

_GRANTED = text("client_id IS NOT NULL")

# Who is told of what, and where (webhooks/managing/).
webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Text, primary_key=True),
    # One of the two owns it.
    owner("users", "user_id", nullable=True),
    owner("organizations", "org_id", nullable=True),
    # Null where events are only fetched.
    Column("url", Text),
    # "repo", "discussion", separated by a space.
    Column("domains", Text, nullable=False),
    # Sealed. During a rotation the old one signs beside the new until then.
    Column("secret", LargeBinary),
    Column("old_secret", LargeBinary),
    Column("old_secret_until", BigInteger),
    # Ed25519, its own for good: sealed private half, published half.
    Column("private_key", LargeBinary, nullable=False),
    Column("public_key", Text, nullable=False),
    Column("ordered", BigInteger, nullable=False),
    # "enabled", "disabled" or "suspended".
    Column("state", Text, nullable=False),
    # The number of its latest delivery; they have no gap.
    Column("last_seq", BigInteger, nullable=False),
    # Triggers since the window began.
    Column("quota_from", BigInteger, nullable=False),
    Column("quota_used", BigInteger, nullable=False),
    # Since when every try has failed; when its owner was warned of that.
    Column("failing_since", BigInteger),
    Column("warned_at", BigInteger),
    # Since when it has been suspended; null while it is not.
    Column("suspended_at", BigInteger),
    # The breaker: failures in a row, and until when nothing is sent.
    Column("failures", BigInteger, nullable=False),
    Column("closed_until", BigInteger, nullable=False),
    # Its place in line: when work of its is due, or has been since it was last served; null while there is none, or as
    # much in the air as may be.
    Column("next_due_at", BigInteger),
    Column("last_trigger_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    # When a try last failed.
    Column("failed_at", BigInteger),
    # Triggers that guests of the watched repos caused in the same window: they do not use up the quota of the others.
    Column("guest_quota_used", BigInteger, nullable=False, server_default="0"),
    # The app that created it and the grant it used, "consent" or "exchange"; null where its owner did without an app.
    # No reference: the grant may end, and the webhook is suspended then.
    Column("client_id", Text),
    Column("grant_kind", Text),
    Column("granted_by", Text),
    Column("granted_scopes", Text),
    # What the grant let it read when somebody last looked (webhooks/managing/grants.py).
    Column("reach", Text),
    # When the app created or last changed it: what an organization ended before does not concern it.
    Column("granted_at", BigInteger),
    Index("ix_webhooks_granted", "id", sqlite_where=_GRANTED, postgresql_where=_GRANTED),
    Index("ix_webhooks_granted_by", "granted_by", "client_id", sqlite_where=_GRANTED, postgresql_where=_GRANTED),
    Index(None, "user_id"),
    Index(None, "org_id"),
    Index(None, "next_due_at"),
)

# What a webhook watches. A name that nobody has yet binds to whoever takes it first, and to nobody after them.
watches = Table(
    "watches",
    metadata,
    owner("webhooks", "webhook_id", key=True),
    # "user", "org", "model", "dataset" or "space".
    Column("type", Text, primary_key=True),
    # Lower case.
    Column("key", Text, primary_key=True),
    Column("name", Text, nullable=False),
    # The id of the user, organization or repo; null until there is one, empty once it left the name.
    Column("target_id", Text),
    # The order in which they were given.
    Column("position", BigInteger, nullable=False),
    # Since when; null where that is since its webhook was made.
    Column("made_at", BigInteger),
    Index(None, "target_id", "webhook_id"),
    Index(None, "key", "target_id"),
    sqlite_with_rowid=False,
)

_WAITING = text("state IN ('pending', 'retrying', 'parked') AND lease_until IS NULL")
# Retries, tests and replays wait for no lane. Its columns are those of the index of all that waits, for the same order;
# SQLite takes the younger of two that serve as well (tests/storage/test_plans_of_claims.py).
_BESIDE = text(
    "state IN ('pending', 'retrying', 'parked') AND lease_until IS NULL AND (attempts > 0 OR replay_of <> '')"
)
# What waits in a lane, and what failed and may hold one.
_UNTRIED = text("state IN ('pending', 'retrying', 'parked') AND attempts = 0 AND replay_of = ''")
_TRIED = text("state IN ('pending', 'retrying', 'parked') AND tried_at IS NOT NULL AND replay_of = ''")
_LEASED = text("lease_until IS NOT NULL")

# One event for one webhook (webhooks/delivering/).
deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Text, primary_key=True),
    owner("webhooks", "webhook_id"),
    Column("event_id", Text, nullable=False),
    # Empty for the first; else the delivery that it repeats, so that a repetition is no duplicate.
    Column("replay_of", Text, nullable=False),
    # Gapless in its webhook: where pulling goes on.
    Column("seq", BigInteger, nullable=False),
    # The lane, and the place in it.
    Column("repo_id", Text, nullable=False),
    Column("repo_seq", BigInteger, nullable=False),
    # For lists and filters: as the event says it.
    Column("repo_type", Text, nullable=False),
    Column("repo_name", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("depth", BigInteger, nullable=False),
    # A test has a body of its own; null where it is the event's.
    Column("body", LargeBinary),
    Column("is_test", BigInteger, nullable=False),
    # "pending", "retrying", "parked", "delivered", "failed", "skipped", "cancelled" or "stored".
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    # Of the last try; null where there was no answer.
    Column("status", BigInteger),
    Column("due_at", BigInteger),
    # When the first try ended: an ordered lane waits from then on.
    Column("tried_at", BigInteger),
    Column("lease_until", BigInteger),
    Column("lease_token", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Index("uq_deliveries_event_id_webhook_id_replay_of", "event_id", "webhook_id", "replay_of", unique=True),
    Index("uq_deliveries_webhook_id_seq", "webhook_id", "seq", unique=True),
    Index("ix_deliveries_waiting", "webhook_id", "due_at", "seq", sqlite_where=_WAITING, postgresql_where=_WAITING),
    Index("ix_deliveries_beside", "webhook_id", "due_at", "seq", sqlite_where=_BESIDE, postgresql_where=_BESIDE),
    Index(
        "ix_deliveries_untried", "webhook_id", "repo_id", "repo_seq", sqlite_where=_UNTRIED, postgresql_where=_UNTRIED
    ),
    Index("ix_deliveries_tried", "webhook_id", "repo_id", "tried_at", sqlite_where=_TRIED, postgresql_where=_TRIED),
    Index("ix_deliveries_leased", "webhook_id", "lease_until", sqlite_where=_LEASED, postgresql_where=_LEASED),
    Index(None, "created_at"),
)

# Every try of a delivery, with what came back.
attempts = Table(
    "attempts",
    metadata,
    owner("deliveries", "delivery_id", key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    # Where to, and signed how: both may be set otherwise by the time somebody looks.
    Column("url", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("status", BigInteger),
    Column("duration_ms", BigInteger, nullable=False),
    # In words, where there was no answer; one text for all that could map a network (attack W18).
    Column("error", Text, nullable=False),
    Column("response", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
