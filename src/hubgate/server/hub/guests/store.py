"""SQL statements for guests: write permission, charges, and commits that are only in pull requests."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from hubgate.server.accounts.roles import Role
from hubgate.server.hub.repos.model import PULL_REQUESTS
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import Kind, Params, RowStatement, insert_row

# Whether the user `:user_id` may write to the repo `r`, by ownership or role: Action.REPO_WRITE in access/policy.py,
# without the limits of a token.
_MAY_WRITE = f"""
    (r.owner_id = :user_id OR EXISTS (
        SELECT 1 FROM memberships m WHERE m.org_id = r.owner_id AND m.user_id = :user_id
        AND (m.role >= {Role.WRITE.value} OR (m.role = {Role.CONTRIBUTOR.value} AND r.creator_id = :user_id))
    ))
"""


async def is_writer(tx: Tx | Database, repo_id: str, user_id: str) -> bool:
    sql = f"SELECT 1 FROM repos r WHERE r.id = :repo_id AND {_MAY_WRITE}"
    return await tx.one(sql, {"repo_id": repo_id, "user_id": user_id}) is not None


# Pull requests.

_BY_AUTHOR = "d.repo_id = :repo_id AND d.author_id = :user_id AND d.base IS NOT NULL"


async def count_open_pull_requests(tx: Tx | Database, repo_id: str, user_id: str) -> int:
    sql = f"SELECT count(*) AS n FROM discussions d WHERE {_BY_AUTHOR} AND d.status IN ('draft', 'open')"
    row = await tx.one(sql, {"repo_id": repo_id, "user_id": user_id})
    return int(row["n"]) if row else 0


async def count_open_discussions(tx: Tx, repo_id: str, user_id: str) -> int:
    """The number of a user's open discussions that are not pull requests."""
    row = await tx.one(
        """
        SELECT count(*) AS n FROM discussions
        WHERE repo_id = :repo_id AND author_id = :user_id AND base IS NULL AND status = 'open'
        """,
        {"repo_id": repo_id, "user_id": user_id},
    )
    return int(row["n"]) if row else 0


async def count_pull_request_refs(tx: Tx | Database, repo_id: str, user_id: str) -> int:
    """The number of refs of a user's unmerged pull requests, including closed ones."""
    sql = f"""
        SELECT count(*) AS n FROM discussions d
        JOIN refs f ON f.repo_id = d.repo_id AND f.name = '{PULL_REQUESTS}' || CAST(d.num AS text)
        WHERE {_BY_AUTHOR} AND d.status <> 'merged'
    """
    row = await tx.one(sql, {"repo_id": repo_id, "user_id": user_id})
    return int(row["n"]) if row else 0


# Parameters of statements on many large files of a repo.

_FILE: dict[str, Kind] = {"repo_id": "text", "oid": "text"}


def _files(repo_id: str, oids: Iterable[str]) -> list[Params]:
    return [{"repo_id": repo_id, "oid": oid} for oid in oids]


# Charges. Statements that copy those of any user lock the users, who may be deleted concurrently.


async def bytes_charged(tx: Tx, user_id: str, repo_id: str) -> int:
    """The bytes charged to a user in repos that the user may not write to; or else, if the user may write to this repo
    and is a guest because of a token, in repos that the user may write to. A large file counts once per repo.
    """
    condition = _MAY_WRITE if await is_writer(tx, repo_id, user_id) else f"NOT {_MAY_WRITE}"
    row = await tx.one(
        f"""
        SELECT CAST(COALESCE(SUM(x.charged), 0) AS bigint) AS n FROM (
            SELECT CASE WHEN g.oid = '' THEN SUM(g.bytes) ELSE MAX(g.bytes) END AS charged
            FROM guest_bytes g JOIN repos r ON r.id = g.repo_id
            WHERE g.user_id = :user_id AND {condition} GROUP BY g.repo_id, g.oid
        ) x
        """,
        {"user_id": user_id},
    )
    return int(row["n"]) if row else 0


async def files_charged(tx: Tx, user_id: str, repo_id: str, oids: Collection[str]) -> dict[str, int]:
    """The bytes that the user is already charged for each of these files."""
    rows = await tx.each(_FILE_CHARGED, [{"user_id": user_id, "repo_id": repo_id, "oid": oid} for oid in oids])
    return {row["oid"]: int(row["bytes"]) for row in rows if row["bytes"] is not None}


_FILE_CHARGED = RowStatement(
    """
    SELECT CAST(:oid AS text) AS oid, (
        SELECT MAX(g.bytes) FROM guest_bytes g WHERE g.user_id = :user_id AND g.repo_id = :repo_id AND g.oid = :oid
    ) AS bytes
    """,
    {"user_id": "text", "repo_id": "text", "oid": "text"},
)


async def charge(tx: Tx, user_id: str, repo_id: str, num: int, sizes: Mapping[str, int], now: int) -> None:
    """Charge a user for large files, by their ids. An existing charge becomes the maximum of both."""
    rows: list[Params] = [{"repo_id": repo_id, "oid": oid, "size": size} for oid, size in sizes.items()]
    await tx.each(_CHARGE, rows, {"user_id": user_id, "num": num, "now": now})


_CHARGE = RowStatement(
    """
    INSERT INTO guest_bytes (user_id, repo_id, num, oid, bytes, updated_at)
    SELECT CAST(:user_id AS text), :repo_id, CAST(:num AS bigint), :oid, CAST(:size AS bigint), CAST(:now AS bigint)
    /*pg FROM batch */ WHERE 1 = 1
    ON CONFLICT (user_id, repo_id, num, oid) DO UPDATE SET updated_at = excluded.updated_at,
        bytes = CASE WHEN guest_bytes.bytes > excluded.bytes THEN guest_bytes.bytes ELSE excluded.bytes END
    """,
    {**_FILE, "size": "bigint"},
)


_CHARGE_GIT = insert_row(
    "INSERT INTO guest_bytes (user_id, repo_id, num, oid, bytes, updated_at)",
    """
    ON CONFLICT (user_id, repo_id, num, oid) DO UPDATE SET
        updated_at = excluded.updated_at, bytes = guest_bytes.bytes + excluded.bytes
    """,
)


async def charge_git(tx: Tx, user_id: str, repo_id: str, num: int, size: int, now: int) -> None:
    """Charge a user for git storage; a negative size reduces the charge."""
    values: Params = {"user_id": user_id, "repo_id": repo_id, "num": num, "oid": "", "bytes": size, "updated_at": now}
    await tx.exec(_CHARGE_GIT, values)


async def drop_pending(tx: Tx, user_id: str, repo_id: str, oids: Collection[str]) -> None:
    """Delete the pending charges for files that a pull request now uses."""
    await tx.each(_DROP_PENDING, _files(repo_id, oids), {"user_id": user_id})


_DROP_PENDING = RowStatement(
    """
    DELETE FROM guest_bytes /*pg USING batch */
    WHERE user_id = :user_id AND repo_id = :repo_id AND num = 0 AND oid = :oid
    """,
    _FILE,
)


async def end_charges(tx: Tx, repo_id: str, num: int) -> None:
    """End the charge for git storage of a pull request. Large files stay charged until the sweep has checked them."""
    await release_file_charges(tx, repo_id, num)
    await _end_git_charge(tx, repo_id, num)


async def _end_git_charge(tx: Tx, repo_id: str, num: int) -> None:
    await tx.exec(
        "DELETE FROM guest_bytes WHERE repo_id = :repo_id AND num = :num AND oid = ''", {"repo_id": repo_id, "num": num}
    )


async def move_replaced_charges(tx: Tx, repo_id: str, num: int) -> None:
    """Detach the charges of replaced commits from a pull request. Git storage is then charged under `-num`, so that a
    merge does not end the charge.
    """
    await release_file_charges(tx, repo_id, num)
    await tx.exec(
        """
        INSERT INTO guest_bytes (user_id, repo_id, num, oid, bytes, updated_at)
        SELECT g.user_id, g.repo_id, -g.num, g.oid, g.bytes, g.updated_at FROM guest_bytes g
        JOIN users u ON u.id = g.user_id
        WHERE g.repo_id = :repo_id AND g.num = :num AND g.oid = '' /*pg FOR KEY SHARE OF u */
        ON CONFLICT (user_id, repo_id, num, oid) DO UPDATE SET bytes = guest_bytes.bytes + excluded.bytes
        """,
        {"repo_id": repo_id, "num": num},
    )
    await _end_git_charge(tx, repo_id, num)


async def release_file_charges(tx: Tx, repo_id: str, num: int) -> None:
    """Detach the charges for large files that a pull request may no longer need. The files stay charged until the sweep
    has checked them: another pull request may contain the same commits without having uploaded the files.
    """
    await tx.exec(
        """
        INSERT INTO guest_bytes (user_id, repo_id, num, oid, bytes, updated_at)
        SELECT g.user_id, g.repo_id, 0, g.oid, g.bytes, 0 FROM guest_bytes g JOIN users u ON u.id = g.user_id
        WHERE g.repo_id = :repo_id AND g.num = :num AND g.oid <> '' /*pg FOR KEY SHARE OF u */
        ON CONFLICT (user_id, repo_id, num, oid) DO UPDATE SET
            bytes = CASE WHEN guest_bytes.bytes > excluded.bytes THEN guest_bytes.bytes ELSE excluded.bytes END
        """,
        {"repo_id": repo_id, "num": num},
    )
    await tx.exec(
        "DELETE FROM guest_bytes WHERE repo_id = :repo_id AND num = :num AND oid <> ''",
        {"repo_id": repo_id, "num": num},
    )


async def expire_file_charges(tx: Tx, before: int) -> None:
    """Delete charges for large files that were announced but never uploaded, or were deleted. Charges for git storage
    do not expire, since git objects are never deleted. The charge for a xorb (`xorb:` and its id) expires once the
    xorb is neither waiting for a file nor in one that only guests uploaded.
    """
    await tx.exec(
        """
        DELETE FROM guest_bytes WHERE num = 0 AND oid <> '' AND updated_at < :before AND NOT EXISTS (
            SELECT 1 FROM lfs_links l WHERE l.repo_id = guest_bytes.repo_id AND l.oid = guest_bytes.oid AND l.guest = 1
        ) AND NOT EXISTS (
            SELECT 1 FROM xorb_uploads u WHERE u.repo_id = guest_bytes.repo_id AND u.user_id = guest_bytes.user_id
            AND u.xorb = substr(guest_bytes.oid, 6) AND u.guest = 1
        ) AND NOT EXISTS (
            SELECT 1 FROM xet_file_xorbs p JOIN lfs_links f ON f.repo_id = p.repo_id AND f.oid = p.oid
            WHERE p.repo_id = guest_bytes.repo_id AND p.xorb = substr(guest_bytes.oid, 6) AND f.guest = 1
        )
        """,
        {"before": before},
    )


async def charge_waiting_xorbs(tx: Tx, before: int, now: int) -> None:
    """Charge guests again for xorbs of theirs that are no longer in a file and are stored because their repo still
    receives others.
    """
    await tx.exec(
        """
        INSERT INTO guest_bytes (user_id, repo_id, num, oid, bytes, updated_at)
        SELECT u.user_id, u.repo_id, 0, 'xorb:' || x.id, x.size, CAST(:now AS bigint)
        FROM xorb_uploads u JOIN users a ON a.id = u.user_id JOIN repos r ON r.id = u.repo_id
        JOIN xorbs x ON x.id = u.xorb
        WHERE u.uploaded_at < :before AND u.guest = 1
        AND NOT EXISTS (SELECT 1 FROM xet_file_xorbs p WHERE p.repo_id = u.repo_id AND p.xorb = u.xorb)
        /*pg FOR KEY SHARE OF a, r */
        ON CONFLICT (user_id, repo_id, num, oid) DO NOTHING
        """,
        {"before": before, "now": now},
    )


# Large files that only guests uploaded.


class Links(Struct, frozen=True):
    """The sizes of files linked to a repo: of those that only guests uploaded, and of the owner's."""

    of_guests: Mapping[str, int]
    of_owner: Mapping[str, int]


async def links_among(tx: Tx, repo_id: str, oids: Collection[str]) -> Links:
    rows = await tx.each(_LINK, _files(repo_id, oids))
    of_guests = {row["oid"]: int(row["size"]) for row in rows if row["guest"]}
    return Links(of_guests, {row["oid"]: int(row["size"]) for row in rows if not row["guest"]})


_LINK = RowStatement(
    "SELECT l.oid, l.size, l.guest FROM lfs_links l WHERE l.repo_id = :repo_id AND l.oid = :oid", _FILE
)


async def files_of_guests(tx: Tx, repo_id: str) -> dict[str, int]:
    """The files that only guests uploaded and that a pull request uses, with sizes."""
    sql = "SELECT oid, size FROM lfs_links WHERE repo_id = :repo_id AND guest = 1 AND checked IS NOT NULL"
    rows = await tx.all(sql, {"repo_id": repo_id})
    return {row["oid"]: int(row["size"]) for row in rows}


async def set_received(tx: Tx, user_id: str, repo_id: str, oids: Collection[str]) -> None:
    """Record that a user, who is charged for these files, has sent them."""
    await tx.each(_RECEIVED, _files(repo_id, oids), {"user_id": user_id})


_RECEIVED = RowStatement(
    """
    UPDATE guest_bytes SET checked = 0 /*pg FROM batch */
    WHERE user_id = :user_id AND repo_id = :repo_id AND num = 0 AND oid = :oid
    """,
    _FILE,
)


async def received_among(tx: Tx, user_id: str, repo_id: str, oids: Collection[str]) -> set[str]:
    """Those files of a repo that this user sent, as long as the user is charged for them: an announcement alone says
    nothing about what the user has.
    """
    rows = await tx.each(_RECEIVED_BY, _files(repo_id, oids), {"user_id": user_id})
    return {row["oid"] for row in rows}


_RECEIVED_BY = RowStatement(
    """
    SELECT l.oid FROM lfs_links l WHERE l.repo_id = :repo_id AND l.oid = :oid AND EXISTS (
        SELECT 1 FROM guest_bytes g WHERE g.user_id = :user_id AND g.repo_id = l.repo_id AND g.oid = l.oid
        AND (g.num > 0 OR g.checked IS NOT NULL)
    )
    """,
    _FILE,
)


async def hidden_from(tx: Tx, repo_id: str, user_id: str | None, oids: Collection[str]) -> set[str]:
    """Those files that no pull request uses yet and this user did not upload. The first pull request that uses a file
    sets `checked`.
    """
    rows = await tx.each(_HIDDEN, _files(repo_id, oids), {"user_id": user_id or ""})
    return {row["oid"] for row in rows}


_HIDDEN = RowStatement(
    """
    SELECT l.oid FROM lfs_links l WHERE l.repo_id = :repo_id AND l.oid = :oid AND l.guest = 1 AND l.checked IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM guest_bytes g WHERE g.user_id = :user_id AND g.repo_id = l.repo_id AND g.oid = l.oid
    )
    """,
    _FILE,
)


async def assign_to_owner(tx: Tx, repo_id: str, oids: Collection[str]) -> None:
    """Assign files to the owner, because a writer uploads or uses them, and end all charges for them."""
    await tx.each(_ASSIGN_TO_OWNER, _files(repo_id, oids))
    await tx.each(_END_FILE_CHARGES, _files(repo_id, oids))


_ASSIGN_TO_OWNER = RowStatement(
    "UPDATE lfs_links SET guest = 0 /*pg FROM batch */ WHERE repo_id = :repo_id AND oid = :oid AND guest = 1", _FILE
)
_END_FILE_CHARGES = RowStatement(
    "DELETE FROM guest_bytes /*pg USING batch */ WHERE repo_id = :repo_id AND oid = :oid", _FILE
)


# The sweep. A file is due once it has no charge of a pull request or of a recent upload.

_DUE = """
    l.guest = 1 AND NOT EXISTS (
        SELECT 1 FROM guest_bytes g
        WHERE g.repo_id = l.repo_id AND g.oid = l.oid AND (g.num > 0 OR g.updated_at >= :before)
    )
"""


async def repos_to_sweep(tx: Tx, after: str, before: int, limit: int) -> list[tuple[str, int]]:
    """Repos, with generation, in which something may have changed since the last check."""
    rows = await tx.all(
        f"""
        SELECT r.id, r.generation FROM guest_bytes g JOIN repos r ON r.id = g.repo_id
        WHERE g.repo_id > :after AND g.num > 0 AND (g.checked IS NULL OR g.checked <> r.generation)
        UNION
        SELECT r.id, r.generation FROM lfs_links l JOIN repos r ON r.id = l.repo_id
        WHERE l.repo_id > :after AND {_DUE} AND (l.checked IS NULL OR l.checked <> r.generation)
        ORDER BY 1 LIMIT :limit
        """,
        {"after": after, "before": before, "limit": limit},
    )
    return [(row["id"], int(row["generation"])) for row in rows]


async def charged_refs(tx: Tx, repo_id: str) -> dict[int, str]:
    """The pull requests with charges, and their head commits."""
    rows = await tx.all(
        f"""
        SELECT DISTINCT g.num, f.sha FROM guest_bytes g
        JOIN refs f ON f.repo_id = g.repo_id AND f.name = '{PULL_REQUESTS}' || CAST(g.num AS text)
        WHERE g.repo_id = :repo_id AND g.num > 0
        """,
        {"repo_id": repo_id},
    )
    return {int(row["num"]): row["sha"] for row in rows}


async def set_checked(tx: Tx, repo_id: str, generation: int) -> None:
    await tx.exec(
        "UPDATE guest_bytes SET checked = :generation WHERE repo_id = :repo_id AND num > 0",
        {"repo_id": repo_id, "generation": generation},
    )


async def files_due(tx: Tx, repo_id: str, before: int, limit: int) -> dict[str, int]:
    """The large files that the sweep must check, with sizes."""
    rows = await tx.all(
        f"""
        SELECT l.oid, l.size FROM lfs_links l JOIN repos r ON r.id = l.repo_id
        WHERE l.repo_id = :repo_id AND {_DUE} AND (l.checked IS NULL OR l.checked <> r.generation)
        ORDER BY l.oid LIMIT :limit
        """,
        {"repo_id": repo_id, "before": before, "limit": limit},
    )
    return {row["oid"]: int(row["size"]) for row in rows}


async def drop_due(tx: Tx, repo_id: str, oids: Collection[str], before: int, now: int) -> None:
    """Delete files. A xorb that another file still needs is charged instead of the file, as a whole."""
    await tx.each(_CHARGE_REMAINING_XORBS, _files(repo_id, oids), {"before": before, "now": now})
    await tx.each(_DROP, _files(repo_id, oids), {"before": before})


_CHARGE_REMAINING_XORBS = RowStatement(
    f"""
    INSERT INTO guest_bytes (user_id, repo_id, num, oid, bytes, updated_at)
    SELECT c.user_id, c.repo_id, 0, 'xorb:' || x.id, x.size, CAST(:now AS bigint)
    FROM lfs_links l JOIN guest_bytes c ON c.repo_id = l.repo_id AND c.oid = l.oid JOIN users u ON u.id = c.user_id
    JOIN xet_file_xorbs p ON p.repo_id = l.repo_id AND p.oid = l.oid JOIN xorbs x ON x.id = p.xorb
    /*pg CROSS JOIN batch */ WHERE l.repo_id = :repo_id AND l.oid = :oid AND {_DUE} AND EXISTS (
        SELECT 1 FROM xet_file_xorbs o WHERE o.xorb = p.xorb AND o.repo_id = p.repo_id AND o.oid <> p.oid
    ) /*pg FOR KEY SHARE OF u */
    ON CONFLICT (user_id, repo_id, num, oid) DO NOTHING
    """,
    _FILE,
)


_DROP = RowStatement(
    f"DELETE FROM lfs_links AS l /*pg USING batch */ WHERE l.repo_id = :repo_id AND l.oid = :oid AND {_DUE}", _FILE
)


async def set_needed(tx: Tx, repo_id: str, oids: Collection[str], generation: int) -> None:
    """Record that a pull request contains these files."""
    await tx.each(_NEEDED, _files(repo_id, oids), {"generation": generation})


_NEEDED = RowStatement(
    """
    UPDATE lfs_links SET checked = CAST(:generation AS bigint) /*pg FROM batch */
    WHERE repo_id = :repo_id AND oid = :oid
    """,
    _FILE,
)


# Commits.


async def mark(tx: Tx, repo_id: str, shas: Sequence[str]) -> None:
    """Mark commits as added by a pull request. Whether they are reachable is checked when they are shown."""
    await tx.each(_MARK, [{"repo_id": repo_id, "sha": sha} for sha in shas])


_MARK = RowStatement(
    """
    INSERT INTO pull_request_commits (repo_id, sha, is_reachable)
    SELECT :repo_id, :sha, 0 /*pg FROM batch */ WHERE 1 = 1
    ON CONFLICT (repo_id, sha) DO UPDATE SET checked = NULL
    """,
    {"repo_id": "text", "sha": "text"},
)


async def marked_among(tx: Tx, repo_id: str, shas: Collection[str]) -> set[str]:
    rows = await tx.each(_MARKED, [{"repo_id": repo_id, "sha": sha} for sha in shas])
    return {row["sha"] for row in rows}


_MARKED = RowStatement(
    "SELECT c.sha FROM pull_request_commits c WHERE c.repo_id = :repo_id AND c.sha = :sha",
    {"repo_id": "text", "sha": "text"},
)


async def find_mark(db: Database, repo_id: str, sha: str) -> tuple[bool, int | None] | None:
    """Whether a commit was reachable from a pull request, and the repo's generation at that check; None if the commit
    is not marked.
    """
    row = await db.one(
        "SELECT is_reachable, checked FROM pull_request_commits WHERE repo_id = :repo_id AND sha = :sha",
        {"repo_id": repo_id, "sha": sha},
    )
    return (bool(row["is_reachable"]), row["checked"]) if row else None


async def set_mark(tx: Tx, repo_id: str, sha: str, is_reachable: bool, generation: int) -> None:
    await tx.exec(
        """
        UPDATE pull_request_commits SET is_reachable = :is_reachable, checked = :generation
        WHERE repo_id = :repo_id AND sha = :sha
        """,
        {"repo_id": repo_id, "sha": sha, "is_reachable": int(is_reachable), "generation": generation},
    )


async def unmark(tx: Tx, repo_id: str, sha: str) -> None:
    """Delete the mark of a commit that is on a branch or tag."""
    await tx.exec(
        "DELETE FROM pull_request_commits WHERE repo_id = :repo_id AND sha = :sha", {"repo_id": repo_id, "sha": sha}
    )
