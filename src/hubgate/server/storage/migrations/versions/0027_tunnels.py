"""Adds tunnels to receivers, and the requests that are forwarded through them."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    op.create_table(
        "tunnels",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("user_id", sa.Text, sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
        sa.Column("opened_by", sa.Text),
        sa.Column("process", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_tunnels_user_id_created_at", "tunnels", ["user_id", "created_at"])
    op.create_index("ix_tunnels_process", "tunnels", ["process"])
    op.create_index("ix_tunnels_expires_at", "tunnels", ["expires_at"])
    op.create_table(
        "tunnel_requests",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("tunnel_id", sa.Text, sa.ForeignKey("tunnels.id", ondelete="CASCADE"), nullable=False),
        sa.Column("waiting_process", sa.Text, nullable=False),
        sa.Column("request", sa.LargeBinary, nullable=False),
        sa.Column("sent_at", sa.BigInteger),
        sa.Column("answer", sa.LargeBinary),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_tunnel_requests_tunnel_id", "tunnel_requests", ["tunnel_id"])
    op.create_index("ix_tunnel_requests_expires_at", "tunnel_requests", ["expires_at"])
    answered = sa.text("answer IS NOT NULL")
    op.create_index(
        "ix_tunnel_requests_answered",
        "tunnel_requests",
        ["waiting_process"],
        sqlite_where=answered,
        postgresql_where=answered,
    )
