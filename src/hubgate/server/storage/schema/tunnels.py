"""Tables of tunnels to receivers, and of the requests that are forwarded through them."""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, Table, Text, text

from hubgate.server.storage.schema.base import metadata, owner

_ANSWERED = text("answer IS NOT NULL")

# Temporary links of receivers (webhooks/tunnels/).
tunnels = Table(
    "tunnels",
    metadata,
    # Random: anyone with the id can send requests to the receiver.
    Column("id", Text, primary_key=True),
    owner("users", "user_id"),
    # The app that opened it, and how it acts for the user; null for the user.
    Column("opened_by", Text),
    # The process with the WebSocket of the receiver; null before the receiver has connected.
    Column("process", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Index(None, "user_id", "created_at"),
    Index(None, "process"),
    Index(None, "expires_at"),
)

# Requests that wait for the receiver's answer. Both are sealed: requests contain the secrets of webhooks.
tunnel_requests = Table(
    "tunnel_requests",
    metadata,
    Column("id", Text, primary_key=True),
    owner("tunnels", "tunnel_id"),
    # The process that waits for the answer.
    Column("waiting_process", Text, nullable=False),
    Column("request", LargeBinary, nullable=False),
    # When the process with the WebSocket marked it as sent. A request is sent at most once.
    Column("sent_at", BigInteger),
    Column("answer", LargeBinary),
    Column("expires_at", BigInteger, nullable=False),
    Index(None, "tunnel_id"),
    Index("ix_tunnel_requests_answered", "waiting_process", sqlite_where=_ANSWERED, postgresql_where=_ANSWERED),
    Index(None, "expires_at"),
)
