"""Statements on requests that wait for the answer of a receiver, which another process may be connected to."""

from collections.abc import Sequence

from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import RowStatement, columns_of, insert_row


class RequestTable:
    """The requests to one kind of receivers: `receivers` is the table of receivers with their `process`, `receiver_id`
    its key, and `column` the column of `name` that refers to it. `ready` is a condition on the receiver `t`.
    """

    def __init__(self, name: str, receivers: str, receiver_id: str, column: str, ready: str = "1 = 1") -> None:
        self._ready = ready
        self.name, self._receivers, self._receiver_id, self._column = name, receivers, receiver_id, column
        self._add = insert_row(f"INSERT INTO {name} (id, {column}, waiting_process, request, expires_at)")
        self._take = RowStatement(
            f"""
            UPDATE {name} SET sent_at = :now /*pg FROM batch */
            WHERE {name}.id = :id AND sent_at IS NULL AND EXISTS (
                SELECT 1 FROM {receivers} t WHERE t.{receiver_id} = {name}.{column} AND t.process = :process AND {ready}
            )
            RETURNING {name}.id, {name}.{column} AS receiver_id, request
            """,
            columns_of(text="id"),
        )

    async def count(self, tx: Tx, receiver_id: str) -> int:
        sql = f"SELECT count(*) AS n FROM {self.name} WHERE {self._column} = :id"
        row = await tx.one(sql, {"id": receiver_id})
        return int(row["n"]) if row else 0

    async def add(
        self, tx: Tx, request_id: str, receiver_id: str, process: str, sealed: bytes, expires_at: int
    ) -> None:
        values = {"id": request_id, self._column: receiver_id, "waiting_process": process}
        await tx.exec(self._add, {**values, "request": sealed, "expires_at": expires_at})

    async def unsent(self, db: Database, process: str, limit: int) -> list[str]:
        """Requests that this process has to send, the oldest first."""
        sql = f"""
        SELECT r.id FROM {self._receivers} t JOIN {self.name} r ON r.{self._column} = t.{self._receiver_id}
        WHERE t.process = :process AND r.sent_at IS NULL AND {self._ready} ORDER BY r.id LIMIT :limit
        """
        return [row["id"] for row in await db.few(sql, {"process": process, "limit": limit})]

    async def take(self, tx: Tx, request_ids: Sequence[str], process: str, now: int) -> Sequence[Row]:
        """Mark requests as sent, which only one process can do for each: rows with id, receiver_id and request."""
        rows = [{"id": request_id} for request_id in request_ids]
        return await tx.each(self._take, rows, {"process": process, "now": now})

    async def put_answer(self, tx: Tx, receiver_id: str, request_id: str, sealed: bytes) -> bool:
        sql = f"""
        UPDATE {self.name} SET answer = :answer
        WHERE id = :id AND {self._column} = :receiver_id AND sent_at IS NOT NULL AND answer IS NULL
        """
        return await tx.exec(sql, {"id": request_id, "receiver_id": receiver_id, "answer": sealed}) == 1

    async def has_answers(self, db: Database, process: str) -> bool:
        sql = f"SELECT 1 FROM {self.name} WHERE waiting_process = :process AND answer IS NOT NULL LIMIT 1"
        return await db.one(sql, {"process": process}) is not None

    async def take_answers(self, tx: Tx, process: str) -> Sequence[Row]:
        """Delete the answered requests of this process: rows with id and answer."""
        sql = f"""
        DELETE FROM {self.name} WHERE waiting_process = :process AND answer IS NOT NULL RETURNING id, answer
        """
        return await tx.all(sql, {"process": process})

    async def remove(self, tx: Tx, request_id: str) -> bool:
        """Delete a request; whether it had been sent."""
        row = await tx.one(f"DELETE FROM {self.name} WHERE id = :id RETURNING sent_at", {"id": request_id})
        return row is None or row["sent_at"] is not None

    async def drop_expired(self, tx: Tx, now: int, limit: int) -> int:
        sql = f"""
        DELETE FROM {self.name} WHERE id IN (
            SELECT id FROM {self.name} WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit
        )
        """
        return await tx.exec(sql, {"now": now, "limit": limit})


TUNNEL_REQUESTS = RequestTable("tunnel_requests", "tunnels", "id", "tunnel_id")
