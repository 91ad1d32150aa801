"""Audit log helpers: direct entries, sealing and retention on demand, and an independent verifier."""

import hashlib
import json
from typing import Any

from tests.bed.clock import START
from tests.bed.engines import SECRET_KEY

from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.audit.retention import AuditRetention
from hubgate.server.audit.seal import Sealer
from hubgate.server.audit.verify import Report, verify
from hubgate.server.clock import Clock
from hubgate.server.resources import Hub
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx

ACME = "a" * 24
OTHER = "b" * 24
SECRET = ServerSecret(SECRET_KEY)
ADA = Actor("ada", "c" * 24, "192.0.2.7", "tests", token={"type": "access_token", "id": "d" * 24, "last4": "wxyz"})


async def record_creation(db: Database, org_id: str = ACME, at: int = START) -> None:
    await db.write(lambda tx: record(tx, org_id, EntryType.ORG_CREATE, "created acme", ADA, at, {"name": "acme"}))


async def write_entries(db: Database, count: int, org_id: str = ACME, at: int = START) -> None:
    """Write entries a microsecond apart, so that their order is known."""

    async def unit(tx: Tx) -> None:
        for number in range(count):
            text, data = f"added user{number}", {"user": f"user{number}", "role": "read", "note": 'é "\\\u2028'}
            await record(tx, org_id, EntryType.ORG_ADD_USER, text, ADA, at + number, data)

    await db.write_long(unit)


def sealer_on(db: Database, clock: Clock) -> Sealer:
    return Sealer(db, clock, SECRET)


async def seal_all(hub: Hub) -> None:
    sealer = Sealer(hub.db, hub.clock, hub.secret)
    while await sealer.step():
        continue


async def apply_retention(db: Database, clock: Clock, days: int) -> None:
    retention = AuditRetention(db, clock, SECRET, days)
    while await retention.step():
        continue


async def verify_log(db: Database) -> Report:
    return await verify(db, SECRET)


def check_export(exported: list[dict[str, Any]], batches: list[dict[str, Any]]) -> int:
    """An independent verifier, written from docs/audit.md alone; the number of verified entries."""

    def digest(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    def sealed(entry: dict[str, Any]) -> str:
        hashed = dict(entry)
        hashed["author"] = {key: entry["author"][key] for key in ("_id", "type", "user")}
        if "token" in entry:
            hashed["token"] = {key: value for key, value in entry["token"].items() if key != "deleted"}
        return json.dumps(hashed, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    entries = {entry["_id"]: entry for entry in exported}
    previous, verified_count = "0" * 64, 0
    for number, batch in enumerate(batches, 1):
        assert batch["seq"] == number, f"batch {number} is missing"
        if "droppedAt" not in batch:
            lines = [
                "hubgate audit batch 1",
                f"organization {batch['organization']}",
                f"batch {number}",
                f"sealed {batch['sealedAt']}",
                f"entries {len(batch['ids'])}",
                f"previous {previous}",
                *(digest(sealed(entries[entry_id])) for entry_id in batch["ids"]),
            ]
            assert digest("".join(f"{line}\n" for line in lines)) == batch["hash"], f"batch {number} was changed"
            verified_count += len(batch["ids"])
        previous = batch["hash"]
    return verified_count
