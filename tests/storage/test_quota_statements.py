"""What an upload adds to an owner's quota is found by the ids of its files and xorbs, however many the owner has."""

import re

from tests.bed.engines import Engine
from tests.bed.query_plans import plans_of

from hubgate.server.hub.cas import store as cas_store
from hubgate.server.hub.quotas import store
from hubgate.server.storage.database import Database, Tx

STATEMENTS = {
    "has_file": store._COUNTED_FILE,
    "has_xorb": store._HAS_XORB,
    "size_of_new_xorbs": store._NEW_XORB,
    "size_of_guests_files": store._GUESTS_FILE,
    "xorbs_of_guests_files": store._GUESTS_XORB,
    "ranges_among": cas_store._RANGES,
}
_NUMBERS = "WITH RECURSIVE numbers AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n < 5000)"
_FILL = (
    f"""
    {_NUMBERS}
    INSERT INTO repos (id, type, owner_kind, owner_id, name, private, gated, discussions_disabled, sdk, creator_id,
        card, tags, created_at, updated_at, generation, last_seq, last_discussion)
    SELECT 'r' || n, 'model', 'user', 'u' || (n % 5), 'n' || n, 0, '', 0, '', 'u', '', '', n, n, 0, 0, 0
    FROM numbers WHERE n <= 500
    """,
    f"""
    {_NUMBERS}
    INSERT INTO xorbs (id, hash, size, raw_size, created_at) SELECT 'x' || n, 'h' || n, 1, 1, n FROM numbers
    """,
    f"""
    {_NUMBERS}
    INSERT INTO xorb_uploads (repo_id, xorb, user_id, guest, uploaded_at)
    SELECT 'r' || (1 + n % 500), 'x' || n, 'u', 0, n FROM numbers
    """,
    f"""
    {_NUMBERS}
    INSERT INTO lfs_links (repo_id, oid, size, created_at, guest)
    SELECT 'r' || (1 + n % 500), 'o' || n, 1, n, 0 FROM numbers
    """,
    f"""
    {_NUMBERS}
    INSERT INTO xet_files (repo_id, oid, hash, terms, created_at)
    SELECT 'r' || (1 + n % 500), 'o' || n, 'h' || n, CAST('' AS {{blob}}), n FROM numbers WHERE n % 2 = 0
    """,
    f"""
    {_NUMBERS}
    INSERT INTO xet_file_xorbs (repo_id, oid, xorb, ranges)
    SELECT 'r' || (1 + n % 500), 'o' || n, 'x' || n, CAST('' AS {{blob}}) FROM numbers WHERE n % 2 = 0
    """,
)


async def test_upload_reads_only_rows_of_its_files_and_xorbs(engine: Engine) -> None:
    async def fill(db: Database) -> None:
        async def unit(tx: Tx) -> None:
            for sql in _FILL:
                await tx.exec(sql.format(blob="blob" if engine.name == "sqlite" else "bytea"))

        await db.write_long(unit)

    for name, plan in (await plans_of(engine, fill, STATEMENTS)).items():
        # "SCAN few" and "Function Scan" read rows that the statement has found or was given.
        whole = re.findall(r"Seq Scan on \w+|SCAN (?:[a-z]|repos|xorbs|lfs_links)\b.*", plan)
        assert not whole, f"{name}\n{plan}"
