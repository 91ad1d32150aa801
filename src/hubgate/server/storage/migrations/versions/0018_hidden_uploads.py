"""Hides uploads of guests until a pull request refers to them. Uploads that a pull request uses stay readable."""

from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.execute(
        """
        UPDATE lfs_links SET checked = 0 WHERE guest = 1 AND checked IS NULL AND EXISTS (
            SELECT 1 FROM guest_bytes g WHERE g.repo_id = lfs_links.repo_id AND g.oid = lfs_links.oid AND g.num > 0
        )
        """
    )
