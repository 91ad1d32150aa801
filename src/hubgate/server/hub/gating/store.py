"""SQL statements for access requests."""

from msgspec import Struct

from hubgate.server.accounts.roles import Role
from hubgate.server.events.payload import URL_PREFIXES
from hubgate.server.hub.gating.model import AccessRequest
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Params, containing, insert_row

# In the order of model.AccessRequest. An unverified e-mail address is left out: it may belong to someone else,
# whom the writers trust.
REQUEST = """a.id, a.repo_id, a.user_id, u.name, u.fullname,
    CASE WHEN u.email_verified_at IS NULL THEN '' ELSE u.email END, a.status, a.asked, a.answers, a.reason,
    a.created_at, a.reviewed_at, a.reviewer_id, v.name"""
_TABLES = """access_requests a JOIN users u ON u.id = a.user_id LEFT JOIN users v ON v.id = a.reviewer_id"""


class RequestFilter(Struct, frozen=True):
    """The filters of a list. None and empty values do not filter."""

    status: str = ""
    # Part of the user's name or full name.
    search: str = ""
    # Times of requests, exclusive.
    after: int | None = None
    before: int | None = None


async def has_access(db: Database, repo_id: str, user_id: str) -> bool:
    row = await db.one(
        "SELECT 1 FROM access_requests WHERE repo_id = :repo_id AND user_id = :user_id AND status = 'accepted'",
        {"repo_id": repo_id, "user_id": user_id},
    )
    return row is not None


async def of_user(tx: Tx | Database, repo_id: str, user_id: str) -> AccessRequest | None:
    return _request(
        await tx.one(
            f"SELECT {REQUEST} FROM {_TABLES} WHERE a.repo_id = :repo_id AND a.user_id = :user_id",
            {"repo_id": repo_id, "user_id": user_id},
        )
    )


async def all_of_user(tx: Tx, user_id: str) -> list[AccessRequest]:
    rows = await tx.all(
        f"SELECT {REQUEST} FROM {_TABLES} WHERE a.user_id = :user_id ORDER BY a.created_at, a.id", {"user_id": user_id}
    )
    return [AccessRequest(*row) for row in rows]


async def by_id(tx: Tx, repo_id: str, request_id: str) -> AccessRequest | None:
    return _request(
        await tx.one(
            f"SELECT {REQUEST} FROM {_TABLES} WHERE a.repo_id = :repo_id AND a.id = :id",
            {"repo_id": repo_id, "id": request_id},
        )
    )


def _request(row: Row | None) -> AccessRequest | None:
    return AccessRequest(*row) if row else None


async def page(
    tx: Tx, repo_id: str, request_filter: RequestFilter, cursor: tuple[int, str] | None, limit: int
) -> list[AccessRequest]:
    """Requests for access to a repo, newest first."""
    values: dict[str, str | int] = {"repo_id": repo_id, "limit": limit}
    conditions = ["a.repo_id = :repo_id"]
    if request_filter.status:
        values["status"] = request_filter.status
        conditions.append("a.status = :status")
    if request_filter.search:
        values["pattern"] = containing(request_filter.search)
        conditions.append(
            "(lower(u.name) LIKE lower(:pattern) ESCAPE '!' OR lower(u.fullname) LIKE lower(:pattern) ESCAPE '!')"
        )
    if request_filter.after is not None:
        values["after"] = request_filter.after
        conditions.append("a.created_at > :after")
    if request_filter.before is not None:
        values["before"] = request_filter.before
        conditions.append("a.created_at < :before")
    if cursor is not None:
        values["cursor_time"], values["cursor_id"] = cursor
        conditions.append("(a.created_at, a.id) < (:cursor_time, :cursor_id)")
    rows = await tx.all(
        f"""
        SELECT {REQUEST} FROM {_TABLES} WHERE {" AND ".join(conditions)}
        ORDER BY a.created_at DESC, a.id DESC LIMIT :limit
        """,
        values,
    )
    return [AccessRequest(*row) for row in rows]


async def counts(tx: Tx, repo_id: str) -> dict[str, int]:
    """The number of requests by status; statuses without requests are omitted."""
    rows = await tx.all(
        "SELECT status, count(*) AS n FROM access_requests WHERE repo_id = :repo_id GROUP BY status",
        {"repo_id": repo_id},
    )
    return {row["status"]: int(row["n"]) for row in rows}


_ADD = insert_row(
    """
    INSERT INTO access_requests (id, repo_id, user_id, status, asked, answers, reason, created_at, reviewed_at,
        reviewer_id)
    """,
    "ON CONFLICT (repo_id, user_id) DO NOTHING RETURNING id",
)


async def add(tx: Tx, values: Params) -> bool:
    """Insert a request; False if the user already has one."""
    return await tx.one(_ADD, values) is not None


async def set_status(tx: Tx, request_id: str, status: str, reason: str, reviewer_id: str | None, now: int) -> bool:
    """Change the status; False if the request has it already or was deleted."""
    changed = await tx.exec(
        """
        UPDATE access_requests SET status = :status, reason = :reason, reviewer_id = :reviewer_id, reviewed_at = :now
        WHERE id = :id AND status <> :status
        """,
        {"id": request_id, "status": status, "reason": reason, "reviewer_id": reviewer_id, "now": now},
    )
    return changed == 1


async def remove(tx: Tx, request_id: str) -> bool:
    return await tx.exec("DELETE FROM access_requests WHERE id = :id", {"id": request_id}) == 1


async def remove_pending(tx: Tx, repo_id: str, user_id: str) -> bool:
    """Delete the pending request of a user; False if there is none."""
    sql = "DELETE FROM access_requests WHERE repo_id = :repo_id AND user_id = :user_id AND status = 'pending'"
    return await tx.exec(sql, {"repo_id": repo_id, "user_id": user_id}) == 1


# Users who want mail and have a verified address. One switch covers mail about discussions and access requests.
_WANTS_MAIL = "u.discussion_mail = 1 AND u.disabled_at IS NULL AND u.email_verified_at IS NOT NULL"


class MailRecipient(Struct, frozen=True):
    user_id: str
    email: str


async def reviewers_to_notify(tx: Tx, owner_id: str, except_for: str, limit: int) -> list[MailRecipient]:
    """The user or the admins of the organization with this id, if they want mail, in the order of their ids."""
    rows = await tx.all(
        f"""
        SELECT u.id, u.email FROM users u
        WHERE u.id IN (
            SELECT :owner_id UNION ALL
            SELECT m.user_id FROM memberships m WHERE m.org_id = :owner_id AND m.role = {int(Role.ADMIN)}
        ) AND u.id <> :except_for AND {_WANTS_MAIL} ORDER BY u.id LIMIT :limit
        """,
        {"owner_id": owner_id, "except_for": except_for, "limit": limit},
    )
    return [MailRecipient(*row) for row in rows]


async def address_to_notify(tx: Tx, user_id: str) -> str | None:
    row = await tx.one(f"SELECT u.email FROM users u WHERE u.id = :user_id AND {_WANTS_MAIL}", {"user_id": user_id})
    return row["email"] if row else None


class WaitingRequests(Struct, frozen=True):
    """A repo with pending requests, and their number."""

    type: str
    owner_name: str
    name: str
    count: int

    @property
    def full_name(self) -> str:
        return f"{self.owner_name}/{self.name}"

    @property
    def path(self) -> str:
        """The path of the repo's page."""
        return f"/{URL_PREFIXES[self.type]}{self.full_name}"


async def waiting(tx: Tx, owners: list[str], limit: int) -> list[WaitingRequests]:
    """Repos of these owners with pending requests, oldest request first."""
    params: dict[str, str | int] = {f"owner{number}": owner for number, owner in enumerate(owners)}
    listed = ", ".join(f":{name}" for name in params)
    rows = await tx.all(
        f"""
        SELECT r.type, COALESCE(u.name, o.name) AS owner_name, r.name, count(*) AS n, min(a.created_at) AS oldest
        FROM repos r JOIN access_requests a ON a.repo_id = r.id AND a.status = 'pending'
        LEFT JOIN users u ON r.owner_kind = 'user' AND u.id = r.owner_id
        LEFT JOIN organizations o ON r.owner_kind = 'org' AND o.id = r.owner_id
        WHERE r.owner_id IN ({listed}) AND r.gated <> ''
        GROUP BY r.type, u.name, o.name, r.name ORDER BY oldest LIMIT :limit
        """,
        {**params, "limit": limit},
    )
    return [WaitingRequests(row["type"], row["owner_name"], row["name"], int(row["n"])) for row in rows]
