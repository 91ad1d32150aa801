"""Statements on guests: who is one, what they are charged for, what only their pull requests brought."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from hubgate.server.accounts.roles import Role
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import Each, Kind, Params

# Whether a user may write to the repo `r`, by ownership or role: what access/policy.py says of Action.REPO_WRITE,
# without a token's limits. Takes `user_id`.
_WRITES = f"""
    (r.owner_id = :user_id OR EXISTS (
        SELECT 1 FROM memberships m WHERE m.org_id = r.owner_id AND m.user_id = :user_id
        AND (m.role >= {Role.WRITE.value} OR (m.role = {Role.CONTRIBUTOR.value} AND r.creator_id = :user_id))
    ))
"""


async def is_writer(tx: Tx | Database, repo_id: str, user_id: str) -> bool:
    sql = f"SELECT 1 FROM repos r WHERE r.id = :repo_id AND {_WRITES}"
    return await tx.one(sql, {"repo_id": repo_id, "user_id": user_id}) is not None


async def hold_user(tx: Tx, user_id: str) -> bool:
    """No other unit charges this user until this one ends. Taken before anything of a repo, as a deletion does."""
    return await tx.one("UPDATE users SET name = name WHERE id = :id RETURNING id", {"id": user_id}) is not None


# Pull requests.

_OF_AUTHOR = "d.repo_id = :repo_id AND d.author_id = :user_id AND d.base IS NOT NULL"


async def open_pull_requests(tx: Tx | Database, repo_id: str, user_id: str) -> int:
    sql = f"SELECT count(*) AS n FROM discussions d WHERE {_OF_AUTHOR} AND d.status IN ('draft', 'open')"
    row = await tx.one(sql, {"repo_id": repo_id, "user_id": user_id})
    return int(row["n"]) if row else 0


async def refs_of_pull_requests(tx: Tx | Database, repo_id: str, user_id: str) -> int:
    """Also of closed ones, as long as they are not deleted."""
    sql = f"""
        SELECT count(*) AS n FROM discussions d
        JOIN refs f ON f.repo_id = d.repo_id AND f.name = 'refs/pr/' || CAST(d.num AS text)
        WHERE {_OF_AUTHOR} AND d.status <> 'merged'
    """
    row = await tx.one(sql, {"repo_id": repo_id, "user_id": user_id})
    return int(row["n"]) if row else 0


# Rows of statements about many large files of a repo.

_FILE: dict[str, Kind] = {"repo_id": "text", "oid": "text"}


def _files(repo_id: str, oids: Iterable[str]) -> list[Params]:
    return [{"repo_id": repo_id, "oid": oid} for oid in oids]


# Bytes.


async def bytes_held(tx: Tx, user_id: str) -> int:
    """In all repos that the user may not write to. A large file counts once in each repo."""
    row = await tx.one(
        f"""
        SELECT CAST(COALESCE(SUM(x.held), 0) AS bigint) AS n FROM (
            SELECT CASE WHEN g.oid = '' THEN SUM(g.bytes) ELSE MAX(g.bytes) END AS held
            FROM guest_bytes g JOIN repos r ON r.id = g.repo_id
            WHERE g.user_id = :user_id AND NOT {_WRITES} GROUP BY g.repo_id, g.oid
        ) x
        """,
        {"user_id": user_id},
    )
    return int(row["n"]) if row else 0


async def files_held(tx: Tx, user_id: str, repo_id: str, oids: Collection[str]) -> dict[str, int]:
    """The bytes that the user is charged for each of these files already."""
    rows = await tx.each(_FILE_HELD, [{"user_id": user_id, "repo_id": repo_id, "oid": oid} for oid in oids])
    return {row["oid"]: int(row["bytes"]) for row in rows if row["bytes"] is not None}


_FILE_HELD = Each(
    """
    SELECT CAST(:oid AS text) AS oid, (
        SELECT MAX(g.bytes) FROM guest_bytes g WHERE g.user_id = :user_id AND g.repo_id = :repo_id AND g.oid = :oid
    ) AS bytes
    """,
    {"user_id": "text", "repo_id": "text", "oid": "text"},
)


async def charge(tx: Tx, user_id: str, repo_id: str, num: int, sizes: Mapping[str, int], now: int) -> None:
    """For large files, by their ids."""
    rows: list[Params] = [{"repo_id": repo_id, "oid": oid, "size": size} for oid, size in sizes.items()]
    await tx.each(_CHARGE, rows, {"user_id": user_id, "num": num, "now": now})


_CHARGE = Each(
    """
    INSERT INTO guest_bytes (user_id, repo_id, num, oid, bytes, updated_at)
    SELECT CAST(:user_id AS text), :repo_id, CAST(:num AS bigint), :oid, CAST(:size AS bigint), CAST(:now AS bigint)
    /*pg FROM batch */ WHERE 1 = 1
    ON CONFLICT (user_id, repo_id, num, oid) DO UPDATE SET updated_at = excluded.updated_at,
        bytes = CASE WHEN guest_bytes.bytes > excluded.bytes THEN guest_bytes.bytes ELSE excluded.bytes END
    """,
    {**_FILE, "size": "bigint"},
)


async def charge_git(tx: Tx, user_id: str, repo_id: str, num: int, size: int, now: int) -> None:
    """For what is stored in git; a negative size gives back."""
    await tx.exec(
        """
        INSERT INTO guest_bytes (user_id, repo_id, num, oid, bytes, updated_at)
        VALUES (:user_id, :repo_id, :num, '', :size, :now)
        ON CONFLICT (user_id, repo_id, num, oid) DO UPDATE SET
            updated_at = excluded.updated_at, bytes = guest_bytes.bytes + excluded.bytes
        """,
        {"user_id": user_id, "repo_id": repo_id, "num": num, "size": size, "now": now},
    )


async def forget_waiting(tx: Tx, user_id: str, repo_id: str, oids: Collection[str]) -> None:
    """Files that a pull request took up."""
    await tx.each(_FORGET, _files(repo_id, oids), {"user_id": user_id})


_FORGET = Each(
    """
    DELETE FROM guest_bytes /*pg USING batch */
    WHERE user_id = :user_id AND repo_id = :repo_id AND num = 0 AND oid = :oid
    """,
    _FILE,
)


async def end_charges(tx: Tx, repo_id: str, num: int) -> None:
    await tx.exec("DELETE FROM guest_bytes WHERE repo_id = :repo_id AND num = :num", {"repo_id": repo_id, "num": num})


async def leave_behind(tx: Tx, repo_id: str, num: int) -> None:
    """What git stores for a pull request whose commits were replaced: charged as `-num`, which no merge ends."""
    given: Params = {"repo_id": repo_id, "num": num}
    await tx.exec(
        """
        INSERT INTO guest_bytes (user_id, repo_id, num, oid, bytes, updated_at)
        SELECT user_id, repo_id, -num, oid, bytes, updated_at FROM guest_bytes
        WHERE repo_id = :repo_id AND num = :num AND oid = ''
        ON CONFLICT (user_id, repo_id, num, oid) DO UPDATE SET bytes = guest_bytes.bytes + excluded.bytes
        """,
        given,
    )
    await tx.exec("DELETE FROM guest_bytes WHERE repo_id = :repo_id AND num = :num AND oid = ''", given)


async def set_waiting(tx: Tx, repo_id: str, num: int, now: int) -> None:
    """Large files of a pull request whose ref is gone: charged for as long as an upload that none took up."""
    await tx.exec(
        """
        INSERT INTO guest_bytes (user_id, repo_id, num, oid, bytes, updated_at)
        SELECT user_id, repo_id, 0, oid, bytes, :now FROM guest_bytes
        WHERE repo_id = :repo_id AND num = :num AND oid <> ''
        ON CONFLICT (user_id, repo_id, num, oid) DO UPDATE SET updated_at = excluded.updated_at
        """,
        {"repo_id": repo_id, "num": num, "now": now},
    )
    await tx.exec(
        "DELETE FROM guest_bytes WHERE repo_id = :repo_id AND num = :num AND oid <> ''",
        {"repo_id": repo_id, "num": num},
    )


async def expire_waiting(tx: Tx, before: int) -> None:
    await tx.exec("DELETE FROM guest_bytes WHERE num = 0 AND updated_at < :before", {"before": before})


# Large files that only guests sent.


async def guests_among(tx: Tx, repo_id: str, oids: Collection[str]) -> dict[str, int]:
    """The sizes of those that no writer sent or used."""
    rows = await tx.each(_GUEST_LINK, _files(repo_id, oids))
    return {row["oid"]: int(row["size"]) for row in rows}


_GUEST_LINK = Each(
    """
    SELECT l.oid, l.size FROM lfs_links l WHERE l.repo_id = :repo_id AND l.oid = :oid AND l.guest = 1
    """,
    _FILE,
)


async def make_owners(tx: Tx, repo_id: str, oids: Collection[str]) -> None:
    """Files that a writer uses are the owner's from now on."""
    await tx.each(_MAKE_OWNERS, _files(repo_id, oids))


_MAKE_OWNERS = Each(
    "UPDATE lfs_links SET guest = 0 /*pg FROM batch */ WHERE repo_id = :repo_id AND oid = :oid AND guest = 1", _FILE
)


# The sweep: repos with their generation, where something may have changed since it was last looked at.


async def repos_with_charges(tx: Tx, most: int) -> list[tuple[str, int]]:
    rows = await tx.all(
        """
        SELECT DISTINCT r.id, r.generation FROM guest_bytes g JOIN repos r ON r.id = g.repo_id
        WHERE g.num > 0 AND (g.checked IS NULL OR g.checked <> r.generation) ORDER BY r.id LIMIT :most
        """,
        {"most": most},
    )
    return [(row["id"], int(row["generation"])) for row in rows]


async def charged_refs(tx: Tx, repo_id: str) -> dict[int, str]:
    """Pull requests with charges, and the commits that they are at."""
    rows = await tx.all(
        """
        SELECT DISTINCT g.num, f.sha FROM guest_bytes g
        JOIN refs f ON f.repo_id = g.repo_id AND f.name = 'refs/pr/' || CAST(g.num AS text)
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


_UNCHARGED = """
    l.guest = 1 AND NOT EXISTS (SELECT 1 FROM guest_bytes g WHERE g.repo_id = l.repo_id AND g.oid = l.oid)
"""


async def repos_with_uncharged_files(tx: Tx, most: int) -> list[tuple[str, int]]:
    rows = await tx.all(
        f"""
        SELECT DISTINCT r.id, r.generation FROM lfs_links l JOIN repos r ON r.id = l.repo_id
        WHERE {_UNCHARGED} AND (l.checked IS NULL OR l.checked <> r.generation) ORDER BY r.id LIMIT :most
        """,
        {"most": most},
    )
    return [(row["id"], int(row["generation"])) for row in rows]


async def uncharged_files(tx: Tx, repo_id: str, most: int) -> dict[str, int]:
    """Large files that only guests sent and nobody is charged for any more, with their sizes."""
    rows = await tx.all(
        f"""
        SELECT l.oid, l.size FROM lfs_links l JOIN repos r ON r.id = l.repo_id
        WHERE l.repo_id = :repo_id AND {_UNCHARGED} AND (l.checked IS NULL OR l.checked <> r.generation)
        ORDER BY l.oid LIMIT :most
        """,
        {"repo_id": repo_id, "most": most},
    )
    return {row["oid"]: int(row["size"]) for row in rows}


async def drop_uncharged(tx: Tx, repo_id: str, oids: Collection[str]) -> None:
    await tx.each(_DROP, _files(repo_id, oids))


_DROP = Each(
    f"DELETE FROM lfs_links AS l /*pg USING batch */ WHERE l.repo_id = :repo_id AND l.oid = :oid AND {_UNCHARGED}",
    _FILE,
)


async def set_needed(tx: Tx, repo_id: str, oids: Collection[str], generation: int) -> None:
    await tx.each(_NEEDED, _files(repo_id, oids), {"generation": generation})


_NEEDED = Each(
    """
    UPDATE lfs_links SET checked = CAST(:generation AS bigint) /*pg FROM batch */
    WHERE repo_id = :repo_id AND oid = :oid
    """,
    _FILE,
)


# Commits.


async def mark(tx: Tx, repo_id: str, shas: Sequence[str]) -> None:
    """As commits that a pull request brings; whether a ref leads to them is looked up when they are shown."""
    await tx.each(_MARK, [{"repo_id": repo_id, "sha": sha} for sha in shas])


_MARK = Each(
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


_MARKED = Each(
    "SELECT c.sha FROM pull_request_commits c WHERE c.repo_id = :repo_id AND c.sha = :sha",
    {"repo_id": "text", "sha": "text"},
)


async def marked(db: Database, repo_id: str, sha: str) -> tuple[bool, int | None] | None:
    """Whether a pull request led to it when the repo had this generation; None if it is not marked."""
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
    """A commit that is on a branch or tag."""
    await tx.exec(
        "DELETE FROM pull_request_commits WHERE repo_id = :repo_id AND sha = :sha", {"repo_id": repo_id, "sha": sha}
    )
