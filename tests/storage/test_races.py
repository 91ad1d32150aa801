"""Single use is one conditional statement that reports whether it won."""

import asyncio
import subprocess
import sys

from tests.bed.engines import Engine, opened_database
from tests.bed.processes import environment

from hubgate.server.storage.database import Batch, Tx

RACERS = 50
CLAIM = "UPDATE leases SET holder = :me WHERE name = 'prize' AND holder = '' RETURNING holder"
BATCHED = Batch(
    name="test.claim",
    key="name",
    columns={"name": "text", "me": "text"},
    sql="""
    UPDATE leases SET holder = batch.me FROM batch WHERE leases.name = batch.name AND leases.holder = ''
    RETURNING leases.name AS name, leases.holder AS holder
    """,
)


async def put_up_prize(tx: Tx) -> None:
    await tx.exec("INSERT INTO leases (name, holder, expires_at) VALUES ('prize', '', 0)")


async def test_fifty_racers_have_one_winner(storage: Engine) -> None:
    url = storage.fresh_url()
    async with opened_database(url) as db, opened_database(url) as other:
        await db.write(put_up_prize)
        start = asyncio.Barrier(RACERS)

        async def race(me: int) -> bool:
            await start.wait()
            claimed = await (db if me % 2 else other).write(lambda tx: tx.one(CLAIM, {"me": str(me)}))
            return claimed is not None

        assert sum(await asyncio.gather(*map(race, range(RACERS)))) == 1


async def test_fifty_batched_racers_have_one_winner(storage: Engine) -> None:
    url = storage.fresh_url()
    async with opened_database(url) as db, opened_database(url) as other:
        await db.write(put_up_prize)
        start = asyncio.Barrier(RACERS)

        async def race(me: int) -> str | None:
            await start.wait()
            row = await (db if me % 2 else other).batch(BATCHED, {"name": "prize", "me": str(me)})
            return row["holder"] if row else None

        winners = [winner for winner in await asyncio.gather(*map(race, range(RACERS))) if winner is not None]
        final = await db.one("SELECT holder FROM leases WHERE name = 'prize'")
        assert final is not None
        assert winners == [final["holder"]]


_RACER = """
import asyncio, sys
from hubgate.server.storage.engines import open_database
async def main(url, me):
    db = await open_database(url)
    print("ready", flush=True)
    sys.stdin.readline()
    won = 0
    for i in range(200):
        sql = "INSERT INTO leases (name, holder, expires_at) VALUES (:n, :me, 0) ON CONFLICT DO NOTHING RETURNING name"
        won += await db.write(lambda tx: tx.one(sql, {"n": f"prize {i}", "me": me})) is not None
    print(won, flush=True)
    await db.close()
asyncio.run(main(*sys.argv[1:]))
"""


def test_racing_processes_have_one_winner(storage: Engine) -> None:
    url = storage.fresh_url()
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACER, url, str(me)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        for me in range(3)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    won = [int(racer.communicate("go\n", timeout=60)[0]) for racer in racers]
    assert sum(won) == 200
