"""Encrypting webhook secrets and keys again after the server secret was rotated."""

from functools import partial

from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database
from hubgate.server.webhooks.management import store
from hubgate.server.webhooks.sealed import resealed

_BATCH = 500
_COLUMNS = {"secret": "secret", "old_secret": "secret", "private_key": "key"}


async def reseal(db: Database, secret: ServerSecret) -> int:
    """Encrypt with the new server secret; the number of changed values. A value that no configured key decrypts stays:
    restoring the missing key makes it readable again.
    """
    changed, after = 0, ""
    while rows := await db.read_long(partial(store.sealed, after=after, most=_BATCH)):
        after = rows[-1]["id"]
        for row in rows:
            for column, what in _COLUMNS.items():
                old = row[column]
                new = None if old is None else resealed(secret, row["id"], what, bytes(old))
                if new is not None:
                    # A value replaced since the read is already encrypted with the new key.
                    write = partial(store.reseal, webhook_id=row["id"], column=column, old=bytes(old), new=new)
                    changed += await db.write(write)
    return changed
