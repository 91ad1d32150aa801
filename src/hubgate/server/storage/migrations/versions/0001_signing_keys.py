"""Adds signing keys."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "signing_keys",
        sa.Column("kid", sa.Text, primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("algorithm", sa.Text, nullable=False),
        sa.Column("public_jwk", sa.Text, nullable=False),
        sa.Column("sealed_private", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("signs_from", sa.BigInteger, nullable=False),
        sa.Column("published_until", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.UniqueConstraint("seq", name="uq_signing_keys_seq"),
    )
