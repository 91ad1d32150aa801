"""O50: a full database dump holds nothing that could be presented."""

import base64

from cryptography.hazmat.primitives import serialization
from tests.bed.engines import SECRET_KEY
from tests.bed.running import RunningHub

from hubgate.server.app import Hub
from hubgate.server.oauth.keys.model import SigningKey
from hubgate.server.secret import CannotOpen
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


def test_o50_private_keys_are_sealed(hub: RunningHub) -> None:
    dumped = hub.call(dump)

    async def private_halves(opened: Hub) -> list[bytes]:
        keys = [opened.keys.private_key(key) for key in await opened.keys.every()]
        found = []
        for key in keys:
            der = key.private_bytes(
                serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            secret_exponent = key.private_numbers().d
            found += [der[40:], secret_exponent.to_bytes(256), base64.b64encode(der)[20:]]
        return found

    halves = hub.call(private_halves)
    assert halves
    assert hub.call(lambda opened: opened.keys.published())[0]["n"].encode() in dumped, "the dump is complete"
    for secret in (*halves, SECRET_KEY.encode()):
        assert secret not in dumped


def test_o50_a_sealed_key_moved_to_another_row_does_not_open(hub: RunningHub) -> None:
    async def swap(opened: Hub) -> list[str]:
        await opened.keys.rotate()
        first, second = await opened.keys.every()
        sql = "UPDATE signing_keys SET sealed_private = :sealed WHERE kid = :kid"
        await opened.db.write(lambda tx: tx.exec(sql, {"sealed": first.sealed_private, "kid": second.kid}))
        return [key.kid for key in await opened.keys.every() if opens(opened, key)]

    def opens(opened: Hub, key: SigningKey) -> bool:
        try:
            opened.keys.private_key(key)
        except CannotOpen:
            return False
        return True

    assert len(hub.call(swap)) == 1
