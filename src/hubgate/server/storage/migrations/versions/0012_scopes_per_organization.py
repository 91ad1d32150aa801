"""Stores scopes and membership for each organization of a consent.

Existing grants get the consent's current scopes, except those that only identify the user.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_IDENTITY = ("openid", "profile", "email")


def upgrade() -> None:
    op.add_column("consent_organizations", sa.Column("scopes", sa.Text, nullable=False, server_default=sa.text("''")))
    op.add_column("consent_organizations", sa.Column("joined_at", sa.BigInteger, nullable=False, server_default="0"))
    scopes = "' ' || c.scopes || ' '"
    for name in _IDENTITY:
        scopes = f"REPLACE({scopes}, ' {name} ', ' ')"
    op.execute(
        f"""
        UPDATE consent_organizations SET
            scopes = (SELECT TRIM({scopes}) FROM consents c WHERE c.id = consent_organizations.consent_id),
            joined_at = COALESCE((
                SELECT m.joined_at FROM consents c JOIN memberships m ON m.user_id = c.user_id
                WHERE c.id = consent_organizations.consent_id AND m.org_id = consent_organizations.org_id
            ), 0)
        """
    )
