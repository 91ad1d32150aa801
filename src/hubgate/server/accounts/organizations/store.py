"""SQL statements on organizations, memberships and invitations."""

from msgspec.structs import asdict

from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations.model import Invitation, Member
from hubgate.server.accounts.roles import Role
from hubgate.server.accounts.store import ORGANIZATION, USER, organization
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import containing, insert_row

_INVITATION = "i.id, i.org_id, i.email, i.user_id, i.role, i.invited_by, i.created_at, i.expires_at"

_ADD = insert_row("INSERT INTO organizations (id, name, fullname, website, plan, can_pay, created_at, members_version)")
_ADD_INVITATION = insert_row(
    "INSERT INTO invitations (id, key, org_id, email, user_id, role, invited_by, created_at, expires_at)"
)


async def add(tx: Tx, organization: Organization) -> None:
    await tx.exec(_ADD, asdict(organization) | {"members_version": 0})


async def set_name(tx: Tx, org_id: str, name: str) -> None:
    await tx.exec("UPDATE organizations SET name = :name WHERE id = :id", {"id": org_id, "name": name})


async def set_profile(tx: Tx, org_id: str, fullname: str, website: str) -> None:
    await tx.exec(
        "UPDATE organizations SET fullname = :fullname, website = :website WHERE id = :id",
        {"id": org_id, "fullname": fullname, "website": website},
    )


def _later(column: str) -> str:
    """SQL for `:now`, but always later than the column's value: the clock of another machine may have been ahead."""
    return f"CASE WHEN {column} < CAST(:now AS bigint) THEN CAST(:now AS bigint) ELSE {column} + 1 END"


async def set_plan(tx: Tx, org_id: str, plan: str, now: int) -> None:
    """Set the plan and delete all exchanged tokens of the organization. `plan_since` always increases (`_later`)."""
    sql = f"UPDATE organizations SET plan = :plan, plan_since = {_later('plan_since')} WHERE id = :id"
    await tx.exec(sql, {"id": org_id, "plan": plan, "now": now})
    await tx.exec("DELETE FROM app_tokens WHERE org_id = :id", {"id": org_id})


async def set_can_pay(tx: Tx, org_id: str, can_pay: int) -> None:
    await tx.exec("UPDATE organizations SET can_pay = :can_pay WHERE id = :id", {"id": org_id, "can_pay": can_pay})


async def remove(tx: Tx, org_id: str) -> None:
    await tx.exec("DELETE FROM organizations WHERE id = :id", {"id": org_id})


async def list_all(tx: Tx, search: str, after: str, limit: int) -> list[tuple[Organization, int]]:
    """Organizations by id, so oldest first, each with its member count. `search` is part of a name or a full name."""
    rows = await tx.all(
        f"""
        SELECT {ORGANIZATION}, (SELECT count(*) FROM memberships m WHERE m.org_id = o.id) AS members
        FROM organizations o
        WHERE o.id > :after AND (:search = '' OR lower(o.name) LIKE lower(:pattern) ESCAPE '!'
            OR lower(o.fullname) LIKE lower(:pattern) ESCAPE '!')
        ORDER BY o.id LIMIT :limit
        """,
        {"after": after, "search": search, "pattern": containing(search), "limit": limit},
    )
    return [(Organization(*tuple(row)[:-1]), row["members"]) for row in rows]


async def count_by_plan(tx: Tx) -> dict[str, int]:
    rows = await tx.all("SELECT plan, count(*) AS n FROM organizations GROUP BY plan")
    return {row["plan"]: row["n"] for row in rows}


async def lock(tx: Tx, org_id: str) -> Organization | None:
    """Lock an organization and its members until the end of the transaction; later reads see the latest state.

    None if the organization was deleted.
    """
    # Two statements: SQLite does not support table aliases in RETURNING.
    sql = "UPDATE organizations SET members_version = members_version + 1 WHERE id = :id"
    return await organization(tx, org_id) if await tx.exec(sql, {"id": org_id}) else None


async def lock_organizations_of(tx: Tx, user_id: str) -> list[tuple[str, Role]]:
    """Lock every organization of a user, in the order of ids; returns their ids with the user's current role."""
    org_ids = "SELECT org_id FROM memberships WHERE user_id = :user_id ORDER BY org_id"
    for row in await tx.all(org_ids, {"user_id": user_id}):
        await lock(tx, row["org_id"])
    rows = await tx.all("SELECT org_id, role FROM memberships WHERE user_id = :user_id", {"user_id": user_id})
    return [(row["org_id"], Role(row["role"])) for row in rows]


# Disabled admins cannot act, so they do not count.
_OTHER_ADMIN = """
    SELECT 1 FROM memberships other JOIN users u ON u.id = other.user_id
    WHERE other.role = :admin AND other.user_id <> :user_id AND u.disabled_at IS NULL AND other.org_id =
"""


async def only_admin_of(tx: Tx, user_id: str) -> list[str]:
    """Names of the organizations that would have no admin without this user."""
    rows = await tx.all(
        f"""
        SELECT o.name FROM memberships m JOIN organizations o ON o.id = m.org_id
        WHERE m.user_id = :user_id AND m.role = :admin AND NOT EXISTS ({_OTHER_ADMIN} m.org_id)
        ORDER BY lower(o.name)
        """,
        {"user_id": user_id, "admin": Role.ADMIN.value},
    )
    return [row["name"] for row in rows]


async def has_other_admin(tx: Tx, org_id: str, user_id: str) -> bool:
    sql = f"{_OTHER_ADMIN} :org_id LIMIT 1"
    return await tx.one(sql, {"org_id": org_id, "user_id": user_id, "admin": Role.ADMIN.value}) is not None


async def add_member(tx: Tx, org_id: str, user_id: str, role: Role, now: int) -> bool:
    """Add a member; False if already a member. `joined_at` is unique within an organization, regardless of clocks:
    grants use it to identify the membership.
    """
    await tx.exec(
        f"UPDATE organizations SET last_joined_at = {_later('last_joined_at')} WHERE id = :org_id",
        {"org_id": org_id, "now": now},
    )
    row = await tx.one(
        """
        INSERT INTO memberships (org_id, user_id, role, joined_at)
        SELECT o.id, :user_id, CAST(:role AS bigint), o.last_joined_at FROM organizations o WHERE o.id = :org_id
        ON CONFLICT DO NOTHING RETURNING role
        """,
        {"org_id": org_id, "user_id": user_id, "role": role.value},
    )
    return row is not None


async def role_of(tx: Tx | Database, org_id: str, user_id: str) -> Role | None:
    sql = "SELECT role FROM memberships WHERE org_id = :org_id AND user_id = :user_id"
    row = await tx.one(sql, {"org_id": org_id, "user_id": user_id})
    return Role(row["role"]) if row else None


async def set_role(tx: Tx, org_id: str, user_id: str, role: Role) -> None:
    await tx.exec(
        "UPDATE memberships SET role = :role WHERE org_id = :org_id AND user_id = :user_id",
        {"org_id": org_id, "user_id": user_id, "role": role.value},
    )


async def remove_member(tx: Tx, org_id: str, user_id: str) -> None:
    """Remove a member and the tokens exchanged for them, so that clock skew cannot revive the tokens on rejoining."""
    for table in ("memberships", "app_tokens"):
        sql = f"DELETE FROM {table} WHERE org_id = :org_id AND user_id = :user_id"
        await tx.exec(sql, {"org_id": org_id, "user_id": user_id})


async def count_memberships(tx: Tx, user_id: str) -> int:
    row = await tx.one("SELECT count(*) AS n FROM memberships WHERE user_id = :user_id", {"user_id": user_id})
    return int(row["n"]) if row else 0


async def count_members(tx: Tx | Database, org_id: str) -> int:
    row = await tx.one("SELECT count(*) AS n FROM memberships WHERE org_id = :org_id", {"org_id": org_id})
    return int(row["n"]) if row else 0


async def member_name_by_email(tx: Tx, org_id: str, email: str) -> str | None:
    """The name of the member with this verified address. Two lookups by key, however many members there are."""
    row = await tx.one(
        """
        SELECT u.name FROM users u JOIN memberships m ON m.user_id = u.id AND m.org_id = :org_id
        WHERE u.email = :email AND u.email_verified_at IS NOT NULL
        """,
        {"org_id": org_id, "email": email},
    )
    return row["name"] if row else None


async def members(tx: Tx, org_id: str, *, search: str, email: str, after: str, limit: int) -> list[Member]:
    """Members by name, ignoring case. `search` is part of a name or a full name, `email` a whole verified address."""
    rows = await tx.all(
        f"""
        SELECT {USER}, m.role, m.joined_at FROM memberships m JOIN users u ON u.id = m.user_id
        WHERE m.org_id = :org_id AND lower(u.name) > :after
            AND (:search = '' OR lower(u.name) LIKE lower(:pattern) ESCAPE '!'
                OR lower(u.fullname) LIKE lower(:pattern) ESCAPE '!')
            AND (:email = '' OR (u.email = :email AND u.email_verified_at IS NOT NULL))
        ORDER BY lower(u.name) LIMIT :limit
        """,
        {
            "org_id": org_id,
            "after": after,
            "search": search,
            "pattern": containing(search),
            "email": email,
            "limit": limit,
        },
    )
    return [Member(User(*tuple(row)[:-2]), Role(row["role"]), row["joined_at"]) for row in rows]


async def add_invitation(tx: Tx, key: bytes, invitation: Invitation) -> None:
    await tx.exec(_ADD_INVITATION, asdict(invitation) | {"key": key, "role": invitation.role.value})


async def invitation_by_key(tx: Tx | Database, key: bytes, now: int) -> Invitation | None:
    sql = f"SELECT {_INVITATION} FROM invitations i WHERE i.key = :key AND i.expires_at > :now"
    row = await tx.one(sql, {"key": key, "now": now})
    return _invitation(row) if row else None


async def invitation_by_id(tx: Tx | Database, invitation_id: str, now: int) -> Invitation | None:
    sql = f"SELECT {_INVITATION} FROM invitations i WHERE i.id = :id AND i.expires_at > :now"
    row = await tx.one(sql, {"id": invitation_id, "now": now})
    return _invitation(row) if row else None


async def use_invitation(tx: Tx, invitation_id: str, now: int) -> bool:
    """Delete an open invitation; False if it is not open. Of concurrent calls that accept, decline
    or withdraw it, one wins."""
    sql = "DELETE FROM invitations WHERE id = :id AND expires_at > :now"
    return await tx.exec(sql, {"id": invitation_id, "now": now}) == 1


async def assign_invitation(tx: Tx, invitation_id: str, user_id: str, now: int) -> bool:
    """Assign an invitation, mailed to an address, to the user who signed up with it. Of concurrent calls, one wins."""
    sql = """
        UPDATE invitations SET user_id = :user_id, email = NULL
        WHERE id = :id AND user_id IS NULL AND expires_at > :now
    """
    return await tx.exec(sql, {"id": invitation_id, "user_id": user_id, "now": now}) == 1


async def drop_invitations_of_invitee(tx: Tx, org_id: str | None, email: str | None, user_id: str | None) -> None:
    """Delete the invitations of a person to an organization, or to the hub."""
    await tx.exec(
        """
        DELETE FROM invitations
        WHERE coalesce(org_id, '') = coalesce(:org_id, '') AND (email = :email OR user_id = :user_id)
        """,
        {"org_id": org_id, "email": email, "user_id": user_id},
    )


async def drop_invitations_by(tx: Tx, org_id: str, user_id: str) -> None:
    """Delete the invitations to an organization that a user sent."""
    sql = "DELETE FROM invitations WHERE org_id = :org_id AND invited_by = :user_id"
    await tx.exec(sql, {"org_id": org_id, "user_id": user_id})


async def drop_all_invitations_by(tx: Tx, user_id: str, now: int) -> list[tuple[str | None, str]]:
    """Delete all invitations that a user sent; returns the organization id and the invitee of each open invitation."""
    rows = await tx.all(
        """
        DELETE FROM invitations WHERE invited_by = :user_id
        RETURNING org_id, expires_at, coalesce((SELECT u.name FROM users u WHERE u.id = user_id), email) AS invitee
        """,
        {"user_id": user_id},
    )
    return [(row["org_id"], row["invitee"] or "") for row in rows if row["expires_at"] > now]


async def count_invitations(tx: Tx | Database, org_id: str, now: int) -> int:
    row = await tx.one(
        "SELECT count(*) AS n FROM invitations WHERE org_id = :org_id AND expires_at > :now",
        {"org_id": org_id, "now": now},
    )
    return int(row["n"]) if row else 0


async def invitations_of_organization(
    tx: Tx, org_id: str, now: int, after: str, limit: int
) -> list[tuple[Invitation, str]]:
    """Invitations by id, so oldest first, each with the name or address of the invitee."""
    rows = await tx.all(
        f"""
        SELECT {_INVITATION}, coalesce(u.name, i.email) AS invitee FROM invitations i
        LEFT JOIN users u ON u.id = i.user_id
        WHERE i.org_id = :org_id AND i.expires_at > :now AND i.id > :after ORDER BY i.id LIMIT :limit
        """,
        {"org_id": org_id, "now": now, "after": after, "limit": limit},
    )
    return [(_invitation(row), row["invitee"]) for row in rows]


async def invitations_of_user(tx: Tx, user_id: str, email: str | None, now: int) -> list[tuple[Invitation, str]]:
    """Invitations of a user, each with the organization's name. Pass `email` only if it is verified."""
    rows = await tx.all(
        f"""
        SELECT {_INVITATION}, o.name AS organization FROM invitations i JOIN organizations o ON o.id = i.org_id
        WHERE (i.user_id = :user_id OR i.email = :email) AND i.expires_at > :now ORDER BY i.created_at, i.id
        """,
        {"user_id": user_id, "email": email, "now": now},
    )
    return [(_invitation(row), row["organization"]) for row in rows]


async def drop_expired_invitations(tx: Tx, now: int, limit: int) -> int:
    return await tx.exec(
        """
        DELETE FROM invitations WHERE id IN
            (SELECT id FROM invitations WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit)
        """,
        {"now": now, "limit": limit},
    )


def _invitation(row: Row) -> Invitation:
    return Invitation(
        row["id"],
        row["org_id"],
        row["email"],
        row["user_id"],
        Role(row["role"]),
        row["invited_by"],
        row["created_at"],
        row["expires_at"],
    )


async def ids_with_only_member(tx: Tx, user_id: str) -> list[str]:
    """The ids of organizations whose only member is this user."""
    rows = await tx.all(
        """
        SELECT m.org_id FROM memberships m WHERE m.user_id = :user_id AND NOT EXISTS (
            SELECT 1 FROM memberships o WHERE o.org_id = m.org_id AND o.user_id <> m.user_id
        ) ORDER BY m.org_id
        """,
        {"user_id": user_id},
    )
    return [row["org_id"] for row in rows]


async def shared_with_others(tx: Tx, user_id: str) -> list[tuple[Organization, Role]]:
    """The user's organizations that have other members, by name, each with the user's role."""
    rows = await tx.all(
        f"""
        SELECT {ORGANIZATION}, m.role FROM memberships m JOIN organizations o ON o.id = m.org_id
        WHERE m.user_id = :user_id AND EXISTS (
            SELECT 1 FROM memberships other WHERE other.org_id = m.org_id AND other.user_id <> m.user_id
        ) ORDER BY lower(o.name)
        """,
        {"user_id": user_id},
    )
    return [(Organization(*tuple(row)[:-1]), Role(row["role"])) for row in rows]
