"""The dependencies that the use cases of Spaces share, and what a push changes."""

from functools import partial

import msgspec
from msgspec import Struct

from hubgate.server.clock import Clock
from hubgate.server.secret import ServerSecret
from hubgate.server.spaces import store
from hubgate.server.spaces.model import LONGEST_SLEEP_SECONDS, runnable_sdk
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.signals import Signal

_BATCH = 200


class Spaces(Struct, frozen=True):
    db: Database
    clock: Clock
    secret: ServerSecret
    base_url: str
    # Whether this hub runs Spaces. Otherwise they are stored, with all their settings.
    is_on: bool


async def on_content_changed(tx: Tx, repo_id: str, card: str, now: int) -> None:
    """Record that a Space has new content, in the transaction that moves main. `card` is its card, as JSON."""
    sdk = runnable_sdk(msgspec.json.decode(card))
    if sdk:
        await store.put(tx, repo_id, sdk, LONGEST_SLEEP_SECONDS, now)
    elif not await store.forget_sdk(tx, repo_id, now):
        return
    tx.signal(Signal.SPACES)


async def add_older_spaces(spaces: Spaces) -> None:
    """Add the Spaces that were pushed before an upgrade to the first version that runs Spaces."""
    after = ""
    while rows := await spaces.db.read_long(partial(store.repos_without_row, after=after, limit=_BATCH)):
        after = rows[-1]["id"]
        for row in rows:
            if runnable_sdk(msgspec.json.decode(row["card"])):
                add = partial(on_content_changed, repo_id=row["id"], card=row["card"], now=spaces.clock())
                await spaces.db.write(add)
