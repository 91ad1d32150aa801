"""SQL conditions on deliveries, among them the permission to send, and the statements that add deliveries."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import asdict, fields

from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Params, RowStatement, columns_of
from hubgate.server.webhooks.model import NO_ID
from hubgate.server.webhooks.permissions.store import could_read, may_read

ALIVE = "state IN ('pending', 'retrying', 'parked')"

# The repo of a delivery `d`, as it is now and as it was at the event: events of a private repo stay private when the
# repo becomes public (attack W41).
ABOUT = """
    JOIN webhooks w ON w.id = d.webhook_id
    LEFT JOIN events e ON e.id = d.event_id LEFT JOIN repos r ON r.id = d.repo_id
"""
PRIVATE_NOW, OWNER_NOW = "COALESCE(r.private, e.private)", "COALESCE(r.owner_id, e.owner_id)"
# A test has no event. A test from before an app took the webhook over may contain what was private then.
PRIVATE_THEN = "COALESCE(e.private, CASE WHEN d.created_at < w.granted_at THEN 1 ELSE 0 END)"
OWNER_THEN = "COALESCE(e.owner_id, r.owner_id)"
MAY_GO = f"""
    (d.repo_id = '{NO_ID}' OR ({may_read(PRIVATE_NOW, OWNER_NOW, "d.repo_id")}
        AND {could_read(PRIVATE_THEN, OWNER_THEN, "d.repo_id")}))
"""


# The value of `replay_of` is the id of the original delivery and that of the run, separated by a space. The run is a
# replay of many deliveries, or the id of the delivery itself if it was replayed alone.
RUN_OF = "substr(d.replay_of, 26)"


def replay_of(origin: str, run: str) -> str:
    """Unique for each replay: a delivery can be replayed more than once, and a replay can be replayed."""
    return f"{origin} {run}"


def replay_run(value: str) -> str:
    return value[25:]


class NewDelivery(Struct, frozen=True):
    """A delivery to add. The fields are columns."""

    id: str
    webhook_id: str
    event_id: str
    seq: int
    repo_id: str
    repo_seq: int
    repo_type: str
    repo_name: str
    scope: str
    action: str
    depth: int
    state: str
    reason: str
    due_at: int | None
    created_at: int
    replay_of: str = ""
    body: bytes | None = None
    is_test: int = 0
    attempts: int = 0


_NEW = [field.name for field in fields(NewDelivery)]
_ADD = f"INSERT INTO deliveries ({', '.join(_NEW)}) VALUES ({', '.join(f':{name}' for name in _NEW)})"


async def add(tx: Tx, deliveries: Sequence[NewDelivery]) -> None:
    if deliveries:
        await tx.exec_many(_ADD, [asdict(delivery) for delivery in deliveries])


_FANNED_OUT = columns_of(
    text="id webhook_id event_id repo_id repo_type repo_name scope action state reason",
    bigint="seq repo_seq depth due_at ended_at",
)
_ADD_FANNED_OUT = RowStatement(
    f"""
    INSERT INTO deliveries ({", ".join(_FANNED_OUT)}, replay_of, is_test, attempts, created_at)
    SELECT {", ".join(f":{name}" for name in _FANNED_OUT)}, '', 0, 0, CAST(:now AS bigint) /*pg FROM batch */
    """,
    _FANNED_OUT,
)


async def add_fanned_out(tx: Tx, rows: Sequence[Params], now: int) -> None:
    """Add the deliveries of events, given as the columns of `_FANNED_OUT`."""
    await tx.each(_ADD_FANNED_OUT, rows, {"now": now})
