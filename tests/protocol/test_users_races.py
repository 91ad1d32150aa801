"""Concurrent renames and deletions of one user, by two hubs on one database, leave one name or none."""

from collections.abc import Callable
from functools import partial

from tests.bed.concurrency import run_concurrently
from tests.bed.people import create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import own_account, store
from hubgate.server.accounts.model import User
from hubgate.server.audit.model import SYSTEM
from hubgate.server.errors import HubError
from hubgate.server.resources import Hub

ROUNDS = 12


def succeeds(hub: RunningHub, work: Callable[[Hub], object]) -> bool:
    async def run(opened: Hub) -> bool:
        try:
            await work(opened)  # type: ignore[misc]
        except HubError:
            return False
        return True

    return hub.call(run)


def rename(hub: RunningHub, user: User, name: str) -> bool:
    return succeeds(hub, lambda opened: own_account.rename(opened.accounts, user, name))


def delete(hub: RunningHub, user: User) -> bool:
    return succeeds(hub, lambda opened: own_account.delete(opened.accounts, user, SYSTEM))


def current_names(hub: RunningHub, user: User) -> list[str]:
    async def read(opened: Hub) -> list[str]:
        sql = "SELECT key FROM names WHERE owner_id = :id AND current = 1"
        return [row["key"] for row in await opened.db.read_long(lambda tx: tx.all(sql, {"id": user.id}))]

    return hub.call(read)


def test_concurrent_renames_leave_one_name(hubs: tuple[RunningHub, RunningHub]) -> None:
    one, other = hubs
    for number in range(ROUNDS):
        user = create_user(one, f"user{number}")
        renames = [partial(rename, one, user, f"left{number}"), partial(rename, other, user, f"right{number}")]
        assert run_concurrently(renames) == [True, True]
        latest = one.call(lambda opened, user=user: store.user(opened.db, user.id))
        assert latest is not None
        assert current_names(one, user) == [latest.name]


def test_user_deleted_during_a_rename_has_no_name(hubs: tuple[RunningHub, RunningHub]) -> None:
    one, other = hubs
    for number in range(ROUNDS):
        user = create_user(one, f"user{number}")
        _, deleted = run_concurrently([partial(rename, one, user, f"new{number}"), partial(delete, other, user)])
        assert deleted
        assert current_names(one, user) == []
