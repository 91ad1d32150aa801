"""What users who may write a Space, and the operator, do with it: restart, pause, sleep time."""

from collections.abc import Awaitable, Callable
from typing import Any

from hubgate.server.accounts.account_locks import lock_credentials
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.errors import BadRequest, Forbidden
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.transactions import lock_repo, record_audit
from hubgate.server.spaces import store
from hubgate.server.spaces.context import Spaces
from hubgate.server.spaces.model import HARDWARE, STOP, Space, check_sleep_seconds
from hubgate.server.storage.database import Tx
from hubgate.server.storage.signals import Signal

STOPPED_BY_OPERATOR = "The operator of this hub stopped this Space."
NOT_RUN = "This Space is stored, not run: its card must say sdk: python or sdk: gradio."

Change = Callable[[Tx, int], Awaitable[bool]]


async def state(spaces: Spaces, repo: Repo) -> Space | None:
    """The state of a Space as it is shown; None if the hub does not run it."""
    found = await store.find(spaces.db, repo.id)
    if found is None or not found.sdk or not spaces.is_on:
        return None
    return found


async def restart(spaces: Spaces, repo: Repo, actor: Actor, *, factory: bool) -> None:
    """Build and start a Space again, also if it is paused; `factory`: without cached packages."""

    async def change(tx: Tx, now: int) -> bool:
        await _require_not_stopped(tx, repo)
        return await store.restart(tx, repo.id, now, factory=factory)

    await _change(spaces, repo, actor, change, EntryType.SPACE_RESTART, "restarted the", factory=factory)


async def pause(spaces: Spaces, repo: Repo, actor: Actor) -> None:
    """Stop a Space until it is restarted: pushes and requests do not start it."""

    async def change(tx: Tx, now: int) -> bool:
        await _require_not_stopped(tx, repo)
        return await store.pause(tx, repo.id, now)

    await _change(spaces, repo, actor, change, EntryType.SPACE_PAUSE, "paused the")


async def stop(spaces: Spaces, repo: Repo, actor: Actor) -> None:
    """Pause a Space as the operator. Its page says who did it, and its owner cannot restart it."""

    async def change(tx: Tx, now: int) -> bool:
        return await store.stop(tx, repo.id, STOPPED_BY_OPERATOR, now)

    await _change(spaces, repo, actor, change, EntryType.SPACE_PAUSE, "as operator stopped the")


async def start(spaces: Spaces, repo: Repo, actor: Actor) -> None:
    """Run a Space again as the operator, also one that the operator stopped."""

    async def change(tx: Tx, now: int) -> bool:
        return await store.restart(tx, repo.id, now, factory=False)

    await _change(spaces, repo, actor, change, EntryType.SPACE_RESTART, "as operator restarted the", factory=False)


async def allow_sleep_time(spaces: Spaces, repo: Repo, seconds: int | None, actor: Actor) -> None:
    """Set any sleep time as the operator; None: the Space never sleeps."""
    await _set_sleep_time(spaces, repo, seconds, actor)


async def set_sleep_time(spaces: Spaces, repo: Repo, seconds: int, actor: Actor) -> None:
    """Set the time without requests after which the Space sleeps, within what owners may choose."""
    await _set_sleep_time(spaces, repo, check_sleep_seconds(seconds), actor)


def check_hardware(flavor: str) -> None:
    if flavor != HARDWARE:
        raise BadRequest(f"This hub runs Spaces on {HARDWARE} only.")


async def set_hardware(spaces: Spaces, repo: Repo, flavor: str, sleep_seconds: int | None, actor: Actor) -> None:
    """Accept the only hardware there is, as existing clients request it."""
    check_hardware(flavor)
    if sleep_seconds is not None:
        await set_sleep_time(spaces, repo, sleep_seconds, actor)


async def _set_sleep_time(spaces: Spaces, repo: Repo, seconds: int | None, actor: Actor) -> None:
    async def change(tx: Tx, _: int) -> bool:
        return await store.set_sleep_seconds(tx, repo.id, seconds)

    await _change(
        spaces, repo, actor, change, EntryType.SPACE_UPDATE_SETTINGS, "changed the sleep time of the", seconds=seconds
    )


async def _require_not_stopped(tx: Tx, repo: Repo) -> None:
    found = await store.find(tx, repo.id)
    if found is not None and found.wanted == STOP:
        raise Forbidden(STOPPED_BY_OPERATOR)


async def _change(
    spaces: Spaces, repo: Repo, actor: Actor, change: Change, kind: EntryType, verb: str, **details: Any
) -> None:
    now = spaces.clock()

    async def unit(tx: Tx) -> None:
        # A Space that was paused because its owner's account was disabled must not be restarted by a request in flight.
        await lock_credentials(tx, actor.user_id, actor.credentials_version)
        await lock_repo(tx, repo.id)
        if not await change(tx, now):
            raise BadRequest(NOT_RUN)
        await record_audit(tx, repo.owner, kind, repo, f"{verb} {repo.label}", actor, now, **details)
        tx.signal(Signal.SPACES)

    await spaces.db.write(unit)
