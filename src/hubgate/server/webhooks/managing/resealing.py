"""When the server secret is replaced: the secrets and keys of webhooks under the new one."""

from functools import partial

from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database
from hubgate.server.webhooks.managing import store
from hubgate.server.webhooks.sealed import resealed

_AT_ONCE = 500
_WHAT = {"secret": "secret", "old_secret": "secret", "private_key": "key"}


async def reseal(db: Database, secret: ServerSecret) -> int:
    """How many were changed. What no configured key opens stays as it is: a key put back opens it again."""
    changed, after = 0, ""
    while rows := await db.read_long(partial(store.sealed, after=after, most=_AT_ONCE)):
        after = rows[-1]["id"]
        for row in rows:
            for column, what in _WHAT.items():
                old = row[column]
                new = None if old is None else resealed(secret, row["id"], what, bytes(old))
                if new is not None:
                    # Set anew meanwhile, it was sealed by a hub that has the new key already.
                    write = partial(store.reseal, webhook_id=row["id"], column=column, old=bytes(old), new=new)
                    changed += await db.write(write)
    return changed
