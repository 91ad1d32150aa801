"""Secrets and variables of a Space: users who may write it set them, its app finds them in its environment."""

from collections.abc import Sequence
from enum import Enum
from functools import partial

from msgspec import Struct

from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.errors import NotFound, Unprocessable
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.transactions import lock_repo, record_audit
from hubgate.server.secret import CannotOpen, ServerSecret
from hubgate.server.spaces import settings_store, store
from hubgate.server.spaces.context import Spaces
from hubgate.server.spaces.model import MAX_KEYS, check_setting
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.signals import Signal

_BATCH = 500


class Kind(Enum):
    SECRET = "secret"  # noqa: S105
    VARIABLE = "variable"


_ENTRY_TYPES = {Kind.SECRET: EntryType.SPACE_UPDATE_SECRETS, Kind.VARIABLE: EntryType.SPACE_UPDATE_VARIABLES}


class NewSetting(Struct, frozen=True):
    """A secret or variable to set."""

    kind: Kind
    key: str
    value: str
    description: str = ""

    def __post_init__(self) -> None:
        check_setting(self.key, self.value, self.description)


async def put(spaces: Spaces, repo: Repo, new: NewSetting, actor: Actor) -> None:
    """Set a secret or variable. A running app is started again with it."""
    now = spaces.clock()

    async def unit(tx: Tx) -> None:
        await lock_repo(tx, repo.id)
        await _put(tx, spaces, repo.id, new, now)
        text = f"set the {new.kind.value} {new.key} of the {repo.label}"
        await record_audit(tx, repo.owner, _ENTRY_TYPES[new.kind], repo, text, actor, now, key=new.key)
        await _renew(tx, repo.id, now)

    await spaces.db.write(unit)


async def put_first(
    tx: Tx, spaces: Spaces, repo: Repo, settings: Sequence[NewSetting], sleep_seconds: int | None
) -> None:
    """Store the settings of a Space in the transaction that creates it."""
    for new in settings:
        await _put(tx, spaces, repo.id, new, repo.created_at)
    if sleep_seconds is not None:
        await store.set_sleep_seconds(tx, repo.id, sleep_seconds)


async def _put(tx: Tx, spaces: Spaces, repo_id: str, new: NewSetting, now: int) -> None:
    if await settings_store.count_others(tx, repo_id, new.key) >= MAX_KEYS:
        raise Unprocessable(f"A Space has at most {MAX_KEYS} secrets and variables. Delete some first.")
    if new.kind is Kind.SECRET:
        # The environment has one value for a name.
        await settings_store.remove_variable(tx, repo_id, new.key)
        sealed = spaces.secret.seal(new.value.encode(), _location(repo_id, new.key))
        await settings_store.put_secret(tx, repo_id, new.key, sealed, new.description, now)
    else:
        await settings_store.remove_secret(tx, repo_id, new.key)
        await settings_store.put_variable(tx, repo_id, new.key, new.value, new.description, now)


async def remove(spaces: Spaces, repo: Repo, kind: Kind, key: str, actor: Actor) -> None:
    now = spaces.clock()
    remove_row = settings_store.remove_secret if kind is Kind.SECRET else settings_store.remove_variable

    async def unit(tx: Tx) -> None:
        await lock_repo(tx, repo.id)
        if not await remove_row(tx, repo.id, key):
            raise NotFound(f"The Space has no {kind.value} with this name.")
        text = f"deleted the {kind.value} {key} of the {repo.label}"
        await record_audit(tx, repo.owner, _ENTRY_TYPES[kind], repo, text, actor, now, key=key)
        await _renew(tx, repo.id, now)

    await spaces.db.write(unit)


async def _renew(tx: Tx, repo_id: str, now: int) -> None:
    if await store.renew(tx, repo_id, now):
        tx.signal(Signal.SPACES)


async def opened(spaces: Spaces, repo_id: str) -> dict[str, str]:
    """The secrets and variables of a Space as its app gets them. CannotOpen if a secret cannot be decrypted."""
    values = {each.key: each.value or "" for each in await settings_store.variables(spaces.db, repo_id)}
    for key, sealed in await settings_store.sealed_secrets(spaces.db, repo_id):
        values[key] = spaces.secret.open(sealed, _location(repo_id, key)).decode()
    return values


async def reseal(db: Database, secret: ServerSecret) -> int:
    """Encrypt all secrets with the server's first key, and return the number of changed values. A value that no
    configured key decrypts is not changed.
    """
    changed, after = 0, ("", "")
    while rows := await db.read_long(partial(settings_store.all_sealed, after=after, limit=_BATCH)):
        after = (rows[-1]["repo_id"], rows[-1]["key"])
        for row in rows:
            old, location = bytes(row["value"]), _location(row["repo_id"], row["key"])
            if secret.is_sealed_with_first_key(old):
                continue
            try:
                new = secret.seal(secret.open(old, location), location)
            except CannotOpen:
                continue
            write = partial(settings_store.replace_sealed, repo_id=row["repo_id"], key=row["key"], old=old, new=new)
            changed += await db.write(write)
    return changed


def _location(repo_id: str, key: str) -> str:
    return f"space secret {repo_id} {key}"
