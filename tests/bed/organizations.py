"""Helpers for tests of organizations: roles, members, audit log entries."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bed.engines import Engine, settings_for
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import store
from hubgate.server.storage.database import Tx


def role_in(hub: RunningHub, organization: Organization, user: User) -> str | None:
    role = hub.call(lambda opened: store.role_of(opened.db, organization.id, user.id))
    return role.label if role else None


def admins_of(hub: RunningHub, organization: Organization) -> list[str]:
    async def unit(tx: Tx) -> list[str]:
        found = await store.members(tx, organization.id, search="", email="", after="", limit=1000)
        return [member.user.name for member in found if member.role.label == "admin"]

    return hub.call(lambda opened: opened.db.read_long(unit))


def entries_of(hub: RunningHub, organization: Organization) -> list[dict[str, Any]]:
    """The stored audit log, oldest first if the clock was advanced between entries."""

    async def unit(tx: Tx) -> list[dict[str, Any]]:
        sql = """
            SELECT type, message, author_id, author_name, ip, data, token FROM audit_entries
            WHERE org_id = :id ORDER BY created_at, id
        """
        names = ("type", "message", "author_id", "author_name", "ip", "data", "token")
        return [dict(zip(names, row, strict=True)) for row in await tx.all(sql, {"id": organization.id})]

    found = hub.call(lambda opened: opened.db.read_long(unit))
    return [{**entry, "data": json.loads(entry["data"] or "{}")} for entry in found]


def add_many_members(hub: RunningHub, organization: Organization, count: int) -> None:
    """Insert many members directly into the tables."""

    async def unit(tx: Tx) -> None:
        ids = [f"{number:024x}" for number in range(1, count + 1)]
        await tx.exec_many(
            """
            INSERT INTO users (id, name, fullname, email, email_verified_at, website, operator, can_pay, created_at)
            VALUES (:id, :name, :fullname, :email, 1, '', 0, 0, 1)
            """,
            [{"id": i, "name": f"M{i[-3:]}", "fullname": f"Ünal {i[-3:]}", "email": f"{i}@x.org"} for i in ids],
        )
        await tx.exec_many(
            "INSERT INTO memberships (org_id, user_id, role, joined_at) VALUES (:org, :user, 1, 1)",
            [{"org": organization.id, "user": i} for i in ids],
        )

    hub.call(lambda opened: opened.db.write(unit))


def add_to_many_organizations(hub: RunningHub, user: User, count: int) -> None:
    """Insert many organizations directly into the tables: org000 and so on, with the user as admin."""

    async def unit(tx: Tx) -> None:
        ids = [f"{number:024x}" for number in range(count)]
        await tx.exec_many(
            """
            INSERT INTO organizations (id, name, fullname, website, plan, can_pay, created_at, members_version)
            VALUES (:id, :name, '', '', 'free', 0, 1, 0)
            """,
            [{"id": i, "name": f"org{i[-3:]}"} for i in ids],
        )
        await tx.exec_many(
            "INSERT INTO memberships (org_id, user_id, role, joined_at) VALUES (:org, :user, 4, 1)",
            [{"org": i, "user": user.id} for i in ids],
        )

    hub.call(lambda opened: opened.db.write_long(unit))


def invite_to_all_organizations(hub: RunningHub, user: User) -> None:
    """Invite a user to all organizations, directly in the tables."""

    async def unit(tx: Tx) -> None:
        ids = [org_id for (org_id,) in await tx.all("SELECT id FROM organizations")]
        await tx.exec_many(
            """
            INSERT INTO invitations (id, key, org_id, user_id, role, created_at, expires_at)
            VALUES (:id, :key, :id, :user, 1, 1, :until)
            """,
            [{"id": i, "key": i.encode(), "user": user.id, "until": hub.clock() + 1_000_000} for i in ids],
        )

    hub.call(lambda opened: opened.db.write(unit))


@contextmanager
def two_hubs(engine: Engine, folder: Path) -> Iterator[tuple[RunningHub, RunningHub]]:
    """Two hubs on the same database, as on two machines."""
    url = engine.fresh_url()
    with run_hub(settings_for(url, folder / "one")) as first, run_hub(settings_for(url, folder / "two")) as second:
        yield first, second
