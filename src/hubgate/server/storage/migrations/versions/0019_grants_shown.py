"""Stores the other servers of a consent, the basis of a webhook's grant and its takeover by an app, and the time of an
organization's latest membership.

Existing webhooks with a grant count as created by their apps.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    empty = sa.text("''")
    op.add_column("consents", sa.Column("other_resources", sa.Text, nullable=False, server_default=empty))
    op.add_column("webhooks", sa.Column("granted_under", sa.Text))
    op.add_column("webhooks", sa.Column("taken_over", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("organizations", sa.Column("last_joined_at", sa.BigInteger, nullable=False, server_default="0"))
    _fill_resources()
    op.execute(
        """
        UPDATE organizations SET last_joined_at = COALESCE((
            SELECT max(x.joined_at) FROM (
                SELECT org_id, joined_at FROM memberships UNION ALL SELECT org_id, joined_at FROM consent_organizations
            ) x WHERE x.org_id = organizations.id
        ), 0)
        """
    )
    op.execute(
        """
        UPDATE webhooks SET granted_under = (
            SELECT m.joined_at || ' ' || o.plan_since || ' ' || a.exchange_since
            FROM memberships m JOIN organizations o ON o.id = m.org_id JOIN apps a ON a.org_id = o.id
            WHERE m.org_id = webhooks.org_id AND m.user_id = webhooks.granted_by AND a.client_id = webhooks.client_id
                AND m.joined_at <= webhooks.granted_at AND o.plan_since <= webhooks.granted_at
                AND a.exchange_since <= webhooks.granted_at
        ) WHERE grant_kind = 'exchange'
        """
    )


def _fill_resources() -> None:
    """Collect the servers from existing approvals and tokens."""
    found: dict[str, set[str]] = {}
    for table in ("consent_approvals", "refresh_tokens", "app_tokens"):
        sql = f"SELECT DISTINCT consent_id, resources FROM {table} WHERE resources <> '' AND consent_id IS NOT NULL"
        for consent_id, resources in op.get_bind().execute(sa.text(sql)):
            found.setdefault(consent_id, set()).update(resources.split())
    update = sa.text("UPDATE consents SET other_resources = :resources WHERE id = :id")
    for consent_id, named in found.items():
        op.get_bind().execute(update, {"id": consent_id, "resources": " ".join(sorted(named))})
