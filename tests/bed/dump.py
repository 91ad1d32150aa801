"""All values in a hub's database, as an attacker with a copy would read them."""

from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx


async def dump(hub: Hub) -> bytes:
    tables = sorted(await hub.db.tables())

    async def unit(tx: Tx) -> bytes:
        found = b""
        for table in tables:
            for row in await tx.all(f"SELECT * FROM {table}"):
                for value in row:
                    found += b"|" + (bytes(value) if isinstance(value, (bytes, memoryview)) else str(value).encode())
        return found

    return await hub.db.read_long(unit)
