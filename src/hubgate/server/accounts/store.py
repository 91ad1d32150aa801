"""SQL statements on names and users, and the columns to read a person with all memberships in one statement."""

from msgspec.structs import asdict

from hubgate.server.accounts.model import Organization, Person, User, person_of
from hubgate.server.accounts.names import name_key
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import containing, insert_row

# Columns in the order of model.User, model.Organization and the role. Statements that read a credential start with
# PERSON.
USER = """u.id, u.name, u.fullname, u.email, u.email_verified_at, u.website, u.operator, u.can_pay, u.created_at,
    u.disabled_at, u.credentials_version"""
ORGANIZATION = "o.id, o.name, o.fullname, o.website, o.plan, o.can_pay, o.created_at"
PERSON = f"{USER}, {ORGANIZATION}, m.role"
MEMBERSHIPS = "LEFT JOIN memberships m ON m.user_id = u.id LEFT JOIN organizations o ON o.id = m.org_id"


def current_membership_sql(consent: str = "c", granted: str = "co", member: str = "m") -> str:
    """The SQL condition that an organization was granted in a consent during the current membership: a member who left
    and joined again must grant it again (attack O66). The parameters are table aliases.
    """
    return (
        f"{member}.org_id = {granted}.org_id AND {member}.user_id = {consent}.user_id "
        f"AND {member}.joined_at = {granted}.joined_at"
    )


_PERSON_BY_ID = f"SELECT {PERSON} FROM users u {MEMBERSHIPS} WHERE u.id = :id"


async def person(db: Database, user_id: str) -> Person | None:
    rows = await db.few(_PERSON_BY_ID, {"id": user_id})
    return person_of(rows) if rows else None


async def organizations_of(db: Database, user_id: str) -> list[Organization]:
    """A user's organizations by name; empty if the user was deleted concurrently."""
    found = await person(db, user_id)
    return [membership.organization for membership in found.memberships] if found else []


async def user(tx: Tx | Database, user_id: str) -> User | None:
    row = await tx.one(f"SELECT {USER} FROM users u WHERE u.id = :id", {"id": user_id})
    return User(*row) if row else None


async def wants_discussion_mail(db: Database, user_id: str) -> bool:
    row = await db.one("SELECT discussion_mail FROM users WHERE id = :id", {"id": user_id})
    return row is not None and bool(row["discussion_mail"])


async def set_discussion_mail(tx: Tx, user_id: str, wanted: bool) -> None:
    await tx.exec("UPDATE users SET discussion_mail = :wanted WHERE id = :id", {"id": user_id, "wanted": int(wanted)})


async def operators(tx: Tx) -> list[User]:
    """Operators whose accounts are not disabled, oldest first."""
    rows = await tx.all(f"SELECT {USER} FROM users u WHERE u.operator = 1 AND u.disabled_at IS NULL ORDER BY u.id")
    return [User(*row) for row in rows]


async def user_by_name(tx: Tx | Database, name: str) -> User | None:
    row = await tx.one(
        f"""
        SELECT {USER} FROM names n JOIN users u ON u.id = n.owner_id
        WHERE n.key = :key AND n.current = 1 AND n.kind = 'user'
        """,
        {"key": name_key(name)},
    )
    return User(*row) if row else None


async def user_by_email(tx: Tx | Database, email: str) -> User | None:
    row = await tx.one(f"SELECT {USER} FROM users u WHERE u.email = :email", {"email": email})
    return User(*row) if row else None


async def lock_user(tx: Tx, user_id: str) -> User | None:
    """Lock a user until the end of the transaction and return the current row; None if the user was deleted."""
    sql = f"UPDATE users SET name = name WHERE id = :id RETURNING {USER.replace('u.', '')}"
    row = await tx.one(sql, {"id": user_id})
    return User(*row) if row else None


async def organization(tx: Tx | Database, org_id: str) -> Organization | None:
    row = await tx.one(f"SELECT {ORGANIZATION} FROM organizations o WHERE o.id = :id", {"id": org_id})
    return Organization(*row) if row else None


async def organization_by_name(tx: Tx | Database, name: str) -> Organization | None:
    row = await tx.one(
        f"""
        SELECT {ORGANIZATION} FROM names n JOIN organizations o ON o.id = n.owner_id
        WHERE n.key = :key AND n.current = 1 AND n.kind = 'org'
        """,
        {"key": name_key(name)},
    )
    return Organization(*row) if row else None


async def password_hash(tx: Tx | Database, user_id: str) -> str | None:
    row = await tx.one("SELECT password_hash FROM users WHERE id = :id", {"id": user_id})
    return row["password_hash"] if row else None


async def account_named(tx: Tx | Database, name: str) -> User | Organization | None:
    """The account that has this name, or had it before a rename."""
    row = await tx.one("SELECT kind, owner_id FROM names WHERE key = :key", {"key": name_key(name)})
    if row is None:
        return None
    return await (user if row["kind"] == "user" else organization)(tx, row["owner_id"])


async def lock_password(tx: Tx, user_id: str, password_hash: str) -> bool:
    """Lock the password until the end of the transaction; False if it has changed or the user is disabled."""
    sql = """
        UPDATE users SET password_hash = password_hash
        WHERE id = :id AND password_hash = :password_hash AND disabled_at IS NULL
    """
    return await tx.exec(sql, {"id": user_id, "password_hash": password_hash}) == 1


async def name_was_claimed(tx: Tx | Database, name: str) -> bool:
    return await tx.one("SELECT 1 FROM names WHERE key = :key", {"key": name_key(name)}) is not None


async def claim_name(tx: Tx, name: str, kind: str, owner_id: str, now: int) -> bool:
    """Claim a name that no other account has or had; False if it is taken. An account may reclaim its former name."""
    row = await tx.one(
        """
        INSERT INTO names (key, kind, owner_id, current, since, had_repos)
        VALUES (:key, :kind, :owner_id, 1, :now,
            CASE WHEN EXISTS (SELECT 1 FROM repos r WHERE r.owner_id = :owner_id) THEN 1 ELSE 0 END)
        ON CONFLICT (key) DO UPDATE SET current = 1 WHERE names.owner_id = excluded.owner_id
        RETURNING key
        """,
        {"key": name_key(name), "kind": kind, "owner_id": owner_id, "now": now},
    )
    return row is not None


async def retire_name(tx: Tx, name: str) -> None:
    """Mark a name as no longer current, after a rename or deletion; the name stays reserved."""
    await tx.exec("UPDATE names SET current = 0 WHERE key = :key", {"key": name_key(name)})


async def delete_unused_name(tx: Tx, name: str, claimed_after: int) -> bool:
    """Delete a name that was claimed after `claimed_after` and never had repos; False if it stays reserved."""
    sql = "DELETE FROM names WHERE key = :key AND since > :claimed_after AND had_repos = 0"
    return await tx.exec(sql, {"key": name_key(name), "claimed_after": claimed_after}) == 1


async def names_of(tx: Tx, owner_id: str) -> list[str]:
    """The current and all former names of an account, in lower case."""
    rows = await tx.all("SELECT key FROM names WHERE owner_id = :owner_id ORDER BY key", {"owner_id": owner_id})
    return [row["key"] for row in rows]


_ADD_USER = insert_row(
    """
    INSERT INTO users (id, name, fullname, email, email_verified_at, password_hash, website, operator, can_pay,
        created_at)
    """,
    "ON CONFLICT (email) DO NOTHING RETURNING id",
)


async def add_user(tx: Tx, user: User, password_hash: str | None) -> bool:
    """Insert a user; False if the e-mail address already has an account."""
    return await tx.one(_ADD_USER, asdict(user) | {"password_hash": password_hash}) is not None


async def set_profile(tx: Tx, user_id: str, fullname: str, website: str) -> None:
    await tx.exec(
        "UPDATE users SET fullname = :fullname, website = :website WHERE id = :id",
        {"id": user_id, "fullname": fullname, "website": website},
    )


async def set_name(tx: Tx, user_id: str, name: str) -> None:
    await tx.exec("UPDATE users SET name = :name WHERE id = :id", {"id": user_id, "name": name})


async def set_password(tx: Tx, user_id: str, password_hash: str) -> None:
    await tx.exec(
        "UPDATE users SET password_hash = :password_hash WHERE id = :id",
        {"id": user_id, "password_hash": password_hash},
    )


async def increment_credentials_version(tx: Tx, user_id: str) -> None:
    """Increment the version, which rejects requests authenticated earlier (`account_locks.lock_credentials`)."""
    sql = "UPDATE users SET credentials_version = credentials_version + 1 WHERE id = :id"
    await tx.exec(sql, {"id": user_id})


async def credentials_version(tx: Tx, user_id: str) -> int | None:
    row = await tx.one("SELECT credentials_version FROM users WHERE id = :id", {"id": user_id})
    return row["credentials_version"] if row else None


async def verify_email(tx: Tx, user_id: str, email: str, now: int) -> bool:
    """Mark an address as verified; True also if it already was, False if the user has another address now."""
    changed = await tx.exec(
        """
        UPDATE users SET email_verified_at = coalesce(email_verified_at, :now) WHERE id = :id AND email = :email
        """,
        {"id": user_id, "email": email, "now": now},
    )
    return changed == 1


async def change_email(tx: Tx, user_id: str, email: str, now: int) -> bool:
    """Change the address of a user; False if another account has it."""
    row = await tx.one(
        """
        UPDATE users SET email = :email, email_verified_at = :now
        WHERE id = :id AND NOT EXISTS (SELECT 1 FROM users other WHERE other.email = :email AND other.id <> :id)
        RETURNING id
        """,
        {"id": user_id, "email": email, "now": now},
    )
    return row is not None


async def set_disabled(tx: Tx, user_id: str, disabled_at: int | None) -> None:
    await tx.exec("UPDATE users SET disabled_at = :at WHERE id = :id", {"id": user_id, "at": disabled_at})


async def set_user_can_pay(tx: Tx, user_id: str, can_pay: int) -> None:
    await tx.exec("UPDATE users SET can_pay = :can_pay WHERE id = :id", {"id": user_id, "can_pay": can_pay})


async def remove_user(tx: Tx, user_id: str) -> None:
    # Token refreshes lock the consent before they read its user: the opposite order could deadlock.
    await tx.exec("DELETE FROM consents WHERE user_id = :id", {"id": user_id})
    await tx.exec("DELETE FROM users WHERE id = :id", {"id": user_id})


async def list_users(tx: Tx, search: str, after: str, limit: int) -> list[User]:
    """Users by id, so oldest first. `search` is part of a name, a full name or an address."""
    rows = await tx.all(
        f"""
        SELECT {USER} FROM users u
        WHERE u.id > :after
            AND (:search = '' OR lower(u.name) LIKE lower(:pattern) ESCAPE '!'
                OR lower(u.fullname) LIKE lower(:pattern) ESCAPE '!' OR u.email LIKE lower(:pattern) ESCAPE '!')
        ORDER BY u.id LIMIT :limit
        """,
        {"after": after, "search": search, "pattern": containing(search), "limit": limit},
    )
    return [User(*row) for row in rows]


async def count_users(tx: Tx) -> Row:
    rows = await tx.all(
        """
        SELECT count(*) AS users, count(*) - count(email_verified_at) AS unverified, count(disabled_at) AS disabled,
            count(CASE WHEN operator = 1 THEN 1 END) AS operators
        FROM users
        """
    )
    return rows[0]


_ADD_MILESTONE = insert_row("INSERT INTO milestones (name, reached_at)", "ON CONFLICT DO NOTHING RETURNING name")


async def record_milestone(tx: Tx, milestone: str, now: int) -> bool:
    """Record a milestone; False if it was reached before."""
    return await tx.one(_ADD_MILESTONE, {"name": milestone, "reached_at": now}) is not None


async def milestone_reached(tx: Tx | Database, milestone: str) -> bool:
    return await tx.one("SELECT 1 FROM milestones WHERE name = :name", {"name": milestone}) is not None
