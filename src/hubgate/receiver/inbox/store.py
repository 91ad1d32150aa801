"""The inbox's SQLite file. A delivery is `waiting`, `running`, `done` or `failed`.

Every function is one transaction, which is durable when the function returns.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hubgate.receiver.asgi import RawHeaders

WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"
RETENTION_SECONDS = 7 * 24 * 3600
# No delivery waits this long: a later time was computed before the clock was set back.
LONGEST_WAIT_SECONDS = 3600.0
# A delivery that was interrupted this often may be what kills the process. Only one of these runs at a time, so that
# others are not interrupted with it.
SUSPECT_AFTER = 3

_SCHEMA = """
    CREATE TABLE IF NOT EXISTS deliveries (
        number INTEGER PRIMARY KEY,
        path TEXT NOT NULL,
        delivery_id TEXT NOT NULL,
        state TEXT NOT NULL,
        received_at REAL NOT NULL,
        due_at REAL NOT NULL,
        starts INTEGER NOT NULL DEFAULT 0,
        failures INTEGER NOT NULL DEFAULT 0,
        headers TEXT,
        body BLOB,
        error TEXT,
        ended_at REAL,
        UNIQUE (path, delivery_id)
    );
    CREATE INDEX IF NOT EXISTS deliveries_due ON deliveries (due_at, number) WHERE state = 'waiting';
    CREATE INDEX IF NOT EXISTS deliveries_ended ON deliveries (ended_at) WHERE ended_at IS NOT NULL;
"""


@dataclass(frozen=True)
class StoredDelivery:
    number: int
    path: str
    delivery_id: str
    starts: int
    failures: int
    headers: RawHeaders
    body: bytes

    @property
    def interruptions(self) -> int:
        """How often it was running when its process died."""
        return self.starts - 1 - self.failures

    @property
    def is_suspect(self) -> bool:
        return self.interruptions >= SUSPECT_AFTER


class Store:
    """A connection to the file, for one thread at a time."""

    def __init__(self, file: Path) -> None:
        self._db = _open_private(file, timeout=30)
        try:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.executescript(_SCHEMA)
            self._add_failures()
        except sqlite3.Error:
            self._db.close()
            raise

    def close(self) -> None:
        self._db.close()

    def _add_failures(self) -> None:
        """Add the column to a file that an earlier version created."""
        with self._transaction():
            columns = [row[1] for row in self._db.execute("PRAGMA table_info(deliveries)")]
            if "failures" not in columns:
                self._db.execute("ALTER TABLE deliveries ADD COLUMN failures INTEGER NOT NULL DEFAULT 0")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def put(self, path: str, delivery_id: str, headers: RawHeaders, body: bytes, now: float) -> str:
        """Add a delivery and return its state: `waiting` for a new one. A failed delivery is reset to `waiting`."""
        given = {"path": path, "id": delivery_id, "now": now, "headers": _encode_headers(headers), "body": body}
        with self._transaction():
            self._db.execute(
                """
                INSERT INTO deliveries (path, delivery_id, state, received_at, due_at, headers, body)
                VALUES (:path, :id, 'waiting', :now, :now, :headers, :body)
                ON CONFLICT (path, delivery_id) DO UPDATE SET
                    state = 'waiting', due_at = :now, starts = 0, failures = 0, headers = :headers, body = :body,
                    ended_at = NULL
                WHERE state = 'failed'
                """,
                given,
            )
            row = self._db.execute(
                "SELECT state FROM deliveries WHERE path = :path AND delivery_id = :id", given
            ).fetchone()
        return str(row[0])

    def recover(self) -> int:
        """Reset deliveries that a dead process left as running. Only for the process that has the lock."""
        return self._db.execute("UPDATE deliveries SET state = 'waiting' WHERE state = 'running'").rowcount

    def release(self, numbers: Sequence[int]) -> None:
        """Reset running deliveries that a shutdown interrupted, as if they had not been started."""
        with self._transaction():
            self._db.executemany(
                "UPDATE deliveries SET state = 'waiting', starts = starts - 1 WHERE number = ? AND state = 'running'",
                [(number,) for number in numbers],
            )

    def claim(self, limit: int, now: float, *, suspect_runs: bool = False) -> list[StoredDelivery]:
        """Claim due deliveries, oldest first, and mark them as running. RETURNING would need a newer SQLite. At most
        one of them is a suspect, and none if `suspect_runs`.
        """
        with self._transaction():
            self._db.execute(
                "UPDATE deliveries SET due_at = :now WHERE state = 'waiting' AND due_at > :latest",
                {"now": now, "latest": now + LONGEST_WAIT_SECONDS},
            )
            rows = self._db.execute(
                """
                SELECT number, path, delivery_id, starts + 1, failures, headers, body FROM deliveries
                WHERE state = 'waiting' AND due_at <= :now AND (starts - failures < :suspect_after OR NOT :suspect_runs)
                ORDER BY due_at, number LIMIT :limit
                """,
                {"now": now, "limit": limit, "suspect_after": SUSPECT_AFTER, "suspect_runs": suspect_runs},
            ).fetchall()
            found = [
                StoredDelivery(number, path, key, starts, failures, _decode_headers(headers), body)
                for number, path, key, starts, failures, headers, body in rows
            ]
            suspect = next((delivery for delivery in found if delivery.is_suspect), None)
            claimed = [delivery for delivery in found if delivery is suspect or not delivery.is_suspect]
            self._db.executemany(
                "UPDATE deliveries SET state = 'running', starts = starts + 1 WHERE number = ?",
                [(delivery.number,) for delivery in claimed],
            )
        return claimed

    def next_due(self) -> float | None:
        row = self._db.execute("SELECT min(due_at) FROM deliveries WHERE state = 'waiting'").fetchone()
        return None if row is None else row[0]

    def count_pending(self, now: float) -> int:
        """The number of deliveries that are running or due."""
        row = self._db.execute(
            "SELECT count(*) FROM deliveries WHERE state = 'running' OR (state = 'waiting' AND due_at <= :now)",
            {"now": now},
        ).fetchone()
        return int(row[0])

    def mark_done(self, number: int, now: float) -> None:
        """Mark a delivery as done. Its id is retained, its content is deleted."""
        self._db.execute(
            """
            UPDATE deliveries SET state = 'done', ended_at = :now, headers = NULL, body = NULL, error = NULL
            WHERE number = :number
            """,
            {"number": number, "now": now},
        )

    def schedule_retry(self, number: int, due_at: float, error: str) -> None:
        self._db.execute(
            """
            UPDATE deliveries SET state = 'waiting', failures = failures + 1, due_at = :due_at, error = :error
            WHERE number = :number
            """,
            {"number": number, "due_at": due_at, "error": error},
        )

    def mark_failed(self, number: int, now: float, error: str) -> None:
        self._db.execute(
            "UPDATE deliveries SET state = 'failed', ended_at = :now, error = :error WHERE number = :number",
            {"number": number, "now": now, "error": error},
        )

    def delete_expired(self, now: float) -> None:
        self._db.execute("DELETE FROM deliveries WHERE ended_at < :before", {"before": now - RETENTION_SECONDS})


class WorkerLock:
    """The lock of the process that works on the file. The system releases it when the process dies.

    The lock is an open transaction on a second file: SQLite's locks work the same way on every system.
    """

    def __init__(self, file: Path) -> None:
        self._db = _open_private(Path(f"{file}.turn"), timeout=0)

    def try_acquire(self) -> bool:
        """Try to acquire the lock; True if this process has it."""
        if self._db.in_transaction:
            return True
        try:
            self._db.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            return False
        return True

    def release(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def close(self) -> None:
        self._db.close()


def _open_private(file: Path, timeout: float) -> sqlite3.Connection:
    """Open a file that only its owner can read, because it contains payloads of private repos.

    SQLite creates its journal files with the same permissions.
    """
    try:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise sqlite3.OperationalError(error.strerror) from error
    return sqlite3.connect(file, timeout=timeout, isolation_level=None, check_same_thread=False)


def _encode_headers(headers: RawHeaders) -> str:
    return json.dumps([(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers])


def _decode_headers(text: str) -> RawHeaders:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in json.loads(text)]
