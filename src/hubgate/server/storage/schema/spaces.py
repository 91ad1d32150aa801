"""Tables of Spaces that the hub runs: their state, settings, logs, and the requests that are forwarded to them."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, LargeBinary, Table, Text, text

from hubgate.server.storage.schema.base import metadata, owner

_ANSWERED = text("answer IS NOT NULL")
_RUNNING = text("process IS NOT NULL")

# The Spaces whose card has an SDK that the hub runs. A row stays when the card changes to another SDK.
spaces = Table(
    "spaces",
    metadata,
    owner("repos", "repo_id", key=True),
    # "python" or "gradio"; "" if the card no longer names an SDK that the hub runs.
    Column("sdk", Text, nullable=False),
    # "run", "pause", or "stop", which only the operator changes.
    Column("wanted", Text, nullable=False, server_default="run"),
    # Incremented by every push to main, restart, and change of secrets or variables: what runs is older than that.
    Column("version", BigInteger, nullable=False, server_default="1"),
    # The last version that was built or started, successfully or not.
    Column("tried_version", BigInteger, nullable=False, server_default="0"),
    # The last version that must be built without cached packages.
    Column("factory_version", BigInteger, nullable=False, server_default="0"),
    # A stage of spaces/model.py, since when, and a sentence for the owner.
    Column("stage", Text, nullable=False),
    Column("stage_at", BigInteger, nullable=False),
    Column("message", Text, nullable=False),
    # The version and the commit of the app that serves requests; null without one.
    Column("running_version", BigInteger),
    Column("running_sha", Text),
    # Seconds without a request after which it sleeps; null: never.
    Column("sleep_seconds", BigInteger),
    Column("last_request_at", BigInteger, nullable=False),
    # Crashes in a row.
    Column("failures", BigInteger, nullable=False, server_default="0"),
    # The process of `space_processes` that builds and runs it; null without one.
    Column("process", Text),
    # What it uses: thousandths of a CPU, bytes, processes. Null if it does not run.
    Column("used_cpu", BigInteger),
    Column("used_memory", BigInteger),
    Column("used_processes", BigInteger),
    # The numbers of the last lines of its logs.
    Column("build_lines", BigInteger, nullable=False, server_default="0"),
    Column("run_lines", BigInteger, nullable=False, server_default="0"),
    Index("ix_spaces_process", "process", sqlite_where=_RUNNING, postgresql_where=_RUNNING),
)

# The processes that run Spaces.
space_processes = Table(
    "space_processes",
    metadata,
    Column("id", Text, primary_key=True),
    # Changed every two seconds.
    Column("heartbeat", BigInteger, nullable=False),
    # Lock files tell about processes of the same machine only.
    Column("machine", Text, nullable=False),
)

# Values that only the app reads.
space_secrets = Table(
    "space_secrets",
    metadata,
    owner("repos", "repo_id", key=True),
    Column("key", Text, primary_key=True),
    # Sealed.
    Column("value", LargeBinary, nullable=False),
    Column("description", Text, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

space_variables = Table(
    "space_variables",
    metadata,
    owner("repos", "repo_id", key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

# The newest lines of the latest build and of the running app.
space_logs = Table(
    "space_logs",
    metadata,
    owner("repos", "repo_id", key=True),
    # "build" or "run".
    Column("kind", Text, primary_key=True),
    Column("n", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    # Without the line break.
    Column("text", Text, nullable=False),
    sqlite_with_rowid=False,
)

# Requests that wait for the app's answer, like those of tunnels (schema/tunnels.py).
space_requests = Table(
    "space_requests",
    metadata,
    Column("id", Text, primary_key=True),
    Column("repo_id", Text, ForeignKey("spaces.repo_id", ondelete="CASCADE"), nullable=False),
    Column("waiting_process", Text, nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("sent_at", BigInteger),
    Column("answer", LargeBinary),
    Column("expires_at", BigInteger, nullable=False),
    Index(None, "repo_id"),
    Index("ix_space_requests_answered", "waiting_process", sqlite_where=_ANSWERED, postgresql_where=_ANSWERED),
    Index(None, "expires_at"),
)
