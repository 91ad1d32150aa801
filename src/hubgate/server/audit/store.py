"""Statements on audit entries and batches."""

from dataclasses import asdict

from hubgate.server.audit.model import Entry
from hubgate.server.storage.database import Tx


async def add(tx: Tx, entry: Entry) -> None:
    await tx.exec(
        """
        INSERT INTO audit_entries (id, org_id, created_at, type, message, author_id, author_name, ip, user_agent,
            data, token, oauth, batch)
        VALUES (:id, :org_id, :created_at, :type, :message, :author_id, :author_name, :ip, :user_agent,
            :data, :token, :oauth, :batch)
        """,
        asdict(entry),
    )
