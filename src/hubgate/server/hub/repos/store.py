"""SQL statements for repos, their names and their refs."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from msgspec.structs import asdict

from hubgate.server.hub.repos.model import Card, Redirect, Repo, RepoOwner
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Params, insert_row

# In the order of model.Repo.
REPO = """r.id, r.type, r.owner_kind, r.owner_id, COALESCE(u.name, o.name), r.name, r.private, r.gated,
    r.discussions_disabled, r.sdk, r.creator_id, r.creator_client, r.head_sha, r.card, r.tags, r.created_at,
    r.updated_at, r.generation, r.last_seq"""
OWNERS = """LEFT JOIN users u ON r.owner_kind = 'user' AND u.id = r.owner_id
    LEFT JOIN organizations o ON r.owner_kind = 'org' AND o.id = r.owner_id"""

_NAMED = f"""
    FROM names n
    JOIN repo_names rn ON rn.owner_id = n.owner_id AND rn.type = :type AND rn.key = :key
    JOIN repos r ON r.id = rn.repo_id {OWNERS}
"""
_SELECT_NAMED = f"SELECT {REPO} {_NAMED} WHERE n.key = :namespace"
_BY_ID = f"SELECT {REPO} FROM repos r {OWNERS} WHERE r.id = :id"

# A ref, as its name and id.
Ref = tuple[str, str]


async def named(tx: Tx | Database, repo_type: str, namespace: str, name: str) -> Repo | None:
    """The repo that has this name, or had it before it or its owner was renamed or moved."""
    row = await tx.one(_SELECT_NAMED, _name_params(repo_type, namespace, name))
    return Repo(*row) if row else None


async def named_with_ref(
    db: Database, repo_type: str, namespace: str, name: str, refs: Sequence[str]
) -> tuple[Repo, Ref | None] | None:
    """Like `named` and `first_ref`, in one query."""
    sql = _with_first_ref(_NAMED, "n.key = :namespace", len(refs))
    return _repo_and_ref(await db.one(sql, {**_name_params(repo_type, namespace, name), **_numbered(refs)}))


async def by_id(tx: Tx | Database, repo_id: str) -> Repo | None:
    row = await tx.one(_BY_ID, {"id": repo_id})
    return Repo(*row) if row else None


async def by_id_with_ref(db: Database, repo_id: str, refs: Sequence[str]) -> tuple[Repo, Ref | None] | None:
    """Like `by_id` and `first_ref`, in one query."""
    if not refs:
        repo = await by_id(db, repo_id)
        return (repo, None) if repo is not None else None
    sql = _with_first_ref(f"FROM repos r {OWNERS}", "r.id = :id", len(refs))
    return _repo_and_ref(await db.one(sql, {"id": repo_id, **_numbered(refs)}))


def _name_params(repo_type: str, namespace: str, name: str) -> Params:
    return {"type": repo_type, "namespace": namespace.lower(), "key": name.lower()}


def _repo_and_ref(row: Row | None) -> tuple[Repo, Ref | None] | None:
    if row is None:
        return None
    *repo, ref, sha = row
    return Repo(*repo), (ref, sha) if ref is not None else None


@cache
def _with_first_ref(source: str, condition: str, count: int) -> str:
    """The query for a repo and the first of `count` refs that exists."""
    names, order = _precedence(count, "f.name")
    return f"""
        SELECT {REPO}, f.name, f.sha {source} LEFT JOIN refs f ON f.repo_id = r.id AND f.name IN ({names})
        WHERE {condition} ORDER BY {order} LIMIT 1
    """


async def owner_named(tx: Tx | Database, name: str) -> RepoOwner | None:
    """The existing owner with this current or former name."""
    row = await tx.one(
        """
        SELECT n.kind, n.owner_id, COALESCE(u.name, o.name) AS name FROM names n
        LEFT JOIN users u ON n.kind = 'user' AND u.id = n.owner_id
        LEFT JOIN organizations o ON n.kind = 'org' AND o.id = n.owner_id
        WHERE n.key = :key
        """,
        {"key": name.lower()},
    )
    return RepoOwner(*row) if row and row["name"] is not None else None


async def owner_named_even_if_deleted(db: Database, name: str) -> RepoOwner | None:
    """The owner with this current or former name. A deleted owner is returned with the passed name in lower case."""
    found = await owner_named(db, name)
    if found is not None:
        return found
    row = await db.one("SELECT kind, owner_id FROM names WHERE key = :key", {"key": name.lower()})
    return RepoOwner(row["kind"], row["owner_id"], name.lower()) if row else None


async def lock_owner(tx: Tx, owner: RepoOwner) -> RepoOwner | None:
    """Lock an owner until the transaction ends and return it with its current name; None if it was deleted."""
    table = "users" if owner.kind == "user" else "organizations"
    row = await tx.one(f"UPDATE {table} SET name = name WHERE id = :id RETURNING name", {"id": owner.id})
    return RepoOwner(owner.kind, owner.id, row["name"]) if row else None


_CLAIM_NAME = insert_row(
    "INSERT INTO repo_names (owner_id, type, key, repo_id, current)",
    """
    ON CONFLICT (owner_id, type, key) DO UPDATE SET current = 1, left_at = NULL, allowed_by = NULL
        WHERE repo_names.repo_id = excluded.repo_id
    RETURNING key
    """,
)


async def claim_name(tx: Tx, repo_id: str, owner_id: str, repo_type: str, name: str) -> bool:
    """Claim a name for a repo; False if another repo has the name or a redirect from it."""
    values: Params = {"owner_id": owner_id, "type": repo_type, "key": name.lower(), "repo_id": repo_id, "current": 1}
    row = await tx.one(_CLAIM_NAME, values)
    if row is not None:
        # The owner's name stays reserved from now on (accounts/renames.py).
        sql = "UPDATE names SET had_repos = 1 WHERE owner_id = :owner_id AND current = 1 AND had_repos = 0"
        await tx.exec(sql, {"owner_id": owner_id})
    return row is not None


async def retire_names(tx: Tx, repo_id: str, now: int) -> None:
    """Turn all current names of a repo into redirects."""
    await tx.exec(
        "UPDATE repo_names SET current = 0, left_at = :now WHERE repo_id = :repo_id AND current = 1",
        {"repo_id": repo_id, "now": now},
    )


# Redirects: former names of repos.

REDIRECT = f"n.owner_id, n.type, n.key, n.left_at, a.name, {REPO}"


async def redirects_of(tx: Tx, owner_id: str, after_key: str, after_type: str, limit: int) -> list[Redirect]:
    rows = await tx.all(
        f"""
        SELECT {REDIRECT} FROM repo_names n JOIN repos r ON r.id = n.repo_id {OWNERS}
        LEFT JOIN users a ON a.id = n.allowed_by
        WHERE n.owner_id = :owner_id AND n.current = 0
            AND (n.key > :after_key OR (n.key = :after_key AND n.type > :after_type))
        ORDER BY n.key, n.type LIMIT :limit
        """,
        {"owner_id": owner_id, "after_key": after_key, "after_type": after_type, "limit": limit},
    )
    return [_redirect(*row) for row in rows]


def _redirect(
    owner_id: str, repo_type: str, key: str, left_at: int | None, allowed_by: str | None, *repo: Any
) -> Redirect:
    return Redirect(owner_id, repo_type, key, left_at, allowed_by, Repo(*repo))


async def is_redirect(tx: Tx | Database, owner_id: str, repo_type: str, name: str) -> bool:
    sql = "SELECT 1 FROM repo_names WHERE owner_id = :owner_id AND type = :type AND key = :key AND current = 0"
    return await tx.one(sql, {"owner_id": owner_id, "type": repo_type, "key": name.lower()}) is not None


async def drop_redirect(tx: Tx, owner_id: str, repo_type: str, name: str) -> str | None:
    """Delete a redirect and return the id of its repo; None if the redirect does not exist."""
    row = await tx.one(
        """
        DELETE FROM repo_names WHERE owner_id = :owner_id AND type = :type AND key = :key AND current = 0
        RETURNING repo_id
        """,
        {"owner_id": owner_id, "type": repo_type, "key": name.lower()},
    )
    return row["repo_id"] if row else None


async def drop_redirects_to_others(tx: Tx, owner_id: str) -> list[tuple[RepoOwner, str, str, str]]:
    """Delete redirects from names of this owner to repos of others; return owner, type, name and repo id of each."""
    rows = await tx.all(
        """
        DELETE FROM repo_names WHERE owner_id = :owner_id AND current = 0 AND repo_id IN (
            SELECT r.id FROM repos r JOIN repo_names n ON n.repo_id = r.id
            WHERE n.owner_id = :owner_id AND r.owner_id <> :owner_id
        ) RETURNING type, key, repo_id
        """,
        {"owner_id": owner_id},
    )
    org = await tx.one("SELECT name FROM organizations WHERE id = :id", {"id": owner_id}) if rows else None
    owner = RepoOwner("org", owner_id, org["name"]) if org else RepoOwner("user", owner_id, "")
    return [(owner, row["type"], row["key"], row["repo_id"]) for row in rows]


async def names_of(tx: Tx, repo_id: str) -> list[tuple[RepoOwner, str]]:
    """All current and former names of a repo, by owner. A deleted owner has the name ""."""
    rows = await tx.all(
        """
        SELECT CASE WHEN o.id IS NULL THEN 'user' ELSE 'org' END AS kind, n.owner_id,
            COALESCE(u.name, o.name, '') AS name, n.key
        FROM repo_names n LEFT JOIN users u ON u.id = n.owner_id LEFT JOIN organizations o ON o.id = n.owner_id
        WHERE n.repo_id = :repo_id ORDER BY n.owner_id, n.key
        """,
        {"repo_id": repo_id},
    )
    return [(RepoOwner(row["kind"], row["owner_id"], row["name"]), row["key"]) for row in rows]


async def drop_names(tx: Tx, repo_id: str, owner_id: str) -> None:
    await tx.exec(
        "DELETE FROM repo_names WHERE repo_id = :repo_id AND owner_id = :owner_id",
        {"repo_id": repo_id, "owner_id": owner_id},
    )


async def allow_redirects(tx: Tx, repo_id: str, owner_id: str, user_id: str | None) -> None:
    await tx.exec(
        "UPDATE repo_names SET allowed_by = :user_id WHERE repo_id = :repo_id AND owner_id = :owner_id",
        {"repo_id": repo_id, "owner_id": owner_id, "user_id": user_id},
    )


_ADD = insert_row(
    """
    INSERT INTO repos (id, type, owner_kind, owner_id, name, private, gated, discussions_disabled, sdk, creator_id,
        creator_client, head_sha, card, tags, created_at, updated_at, generation, last_seq, last_discussion)
    """
)


async def add(tx: Tx, repo: Repo) -> None:
    await tx.exec(_ADD, asdict(repo) | {"last_discussion": 0})


async def next_seq(tx: Tx, repo_id: str, now: int | None) -> int | None:
    """Lock the repo and return the sequence number of the event to record; None if the repo was deleted. `now` becomes
    the time of the last change, unless it is None.
    """
    row = await tx.one(
        """
        UPDATE repos SET last_seq = last_seq + 1, updated_at = COALESCE(CAST(:now AS bigint), updated_at)
        WHERE id = :id RETURNING last_seq
        """,
        {"id": repo_id, "now": now},
    )
    return int(row["last_seq"]) if row else None


async def next_seq_of_refs(tx: Tx, repo_id: str, now: int | None) -> int | None:
    """Like `next_seq`, for a change of refs: also increments the generation, which invalidates copies of the refs."""
    row = await tx.one(
        """
        UPDATE repos SET last_seq = last_seq + 1, generation = generation + 1,
            updated_at = COALESCE(CAST(:now AS bigint), updated_at)
        WHERE id = :id RETURNING last_seq
        """,
        {"id": repo_id, "now": now},
    )
    return int(row["last_seq"]) if row else None


async def next_seq_of_all(tx: Tx, owner_id: str) -> Sequence[Row]:
    """Lock all repos of an owner and increment their sequence numbers; return id, type, name, private, head_sha, tags
    and last_seq of each. `updated_at` is unchanged, so that lists stay in order.
    """
    return await tx.all(
        """
        UPDATE repos SET last_seq = last_seq + 1 WHERE owner_id = :owner_id
        RETURNING id, type, name, private, head_sha, tags, last_seq
        """,
        {"owner_id": owner_id},
    )


async def next_discussion_number(tx: Tx, repo_id: str) -> int | None:
    row = await tx.one(
        "UPDATE repos SET last_discussion = last_discussion + 1 WHERE id = :id RETURNING last_discussion",
        {"id": repo_id},
    )
    return int(row["last_discussion"]) if row else None


async def set_owner_and_name(tx: Tx, repo_id: str, owner: RepoOwner, name: str) -> None:
    await tx.exec(
        "UPDATE repos SET owner_kind = :kind, owner_id = :owner_id, name = :name WHERE id = :id",
        {"id": repo_id, "kind": owner.kind, "owner_id": owner.id, "name": name},
    )


async def configure(tx: Tx, repo_id: str, private: bool, gated: str, discussions_disabled: bool) -> None:
    await tx.exec(
        """
        UPDATE repos SET private = :private, gated = :gated, discussions_disabled = :discussions_disabled
        WHERE id = :id
        """,
        {
            "id": repo_id,
            "private": int(private),
            "gated": gated,
            "discussions_disabled": int(discussions_disabled),
        },
    )


async def remove(tx: Tx, repo_id: str) -> None:
    await tx.exec("DELETE FROM repos WHERE id = :id", {"id": repo_id})


async def of_owner(tx: Tx, owner_id: str) -> list[Repo]:
    rows = await tx.all(f"SELECT {REPO} FROM repos r {OWNERS} WHERE r.owner_id = :owner_id", {"owner_id": owner_id})
    return [Repo(*row) for row in rows]


async def count_of_owner(db: Database, owner_id: str) -> int:
    row = await db.one("SELECT count(*) AS repos FROM repos WHERE owner_id = :owner_id", {"owner_id": owner_id})
    return int(row["repos"]) if row else 0


async def exists(tx: Tx | Database, repo_id: str) -> bool:
    return await tx.one("SELECT 1 FROM repos WHERE id = :id", {"id": repo_id}) is not None


async def lock(tx: Tx, repo_id: str) -> int | None:
    """Lock a repo until the transaction ends and return its generation; None if the repo was deleted."""
    row = await tx.one("UPDATE repos SET generation = generation WHERE id = :id RETURNING generation", {"id": repo_id})
    return int(row["generation"]) if row else None


# Refs.


async def ref(tx: Tx | Database, repo_id: str, name: str) -> str | None:
    row = await tx.one(
        "SELECT sha FROM refs WHERE repo_id = :repo_id AND name = :name", {"repo_id": repo_id, "name": name}
    )
    return row["sha"] if row else None


async def is_head(tx: Tx | Database, repo_id: str, sha: str) -> bool:
    """Whether a branch or tag points to this id."""
    row = await tx.one(
        """
        SELECT 1 FROM refs WHERE repo_id = :repo_id AND sha = :sha
        AND (name LIKE 'refs/heads/%' OR name LIKE 'refs/tags/%') LIMIT 1
        """,
        {"repo_id": repo_id, "sha": sha},
    )
    return row is not None


async def first_ref(tx: Tx | Database, repo_id: str, names: Sequence[str]) -> Ref | None:
    """The first of `names` that exists, in one query."""
    if not names:
        return None
    row = await tx.one(_first_ref_sql(len(names)), {"repo_id": repo_id, **_numbered(names)})
    return (row["name"], row["sha"]) if row else None


@cache
def _first_ref_sql(count: int) -> str:
    names, order = _precedence(count, "name")
    return f"SELECT name, sha FROM refs WHERE repo_id = :repo_id AND name IN ({names}) ORDER BY {order} LIMIT 1"


def _numbered(names: Sequence[str]) -> dict[str, str]:
    """The parameters of `_precedence`."""
    return {f"name_{number}": name for number, name in enumerate(names)}


def _precedence(count: int, column: str) -> tuple[str, str]:
    """The parameters for names of refs, as a list, and an expression that sorts by their order."""
    parameters = [f":name_{number}" for number in range(count)]
    order = " ".join(f"WHEN {parameter} THEN {number}" for number, parameter in enumerate(parameters))
    return ", ".join(parameters), f"CASE {column} {order} END"


async def refs(tx: Tx, repo_id: str, limit: int = 2**62) -> list[tuple[str, str]]:
    """At most `limit` refs with their ids, in git's order. If there are more, which ones is undefined."""
    rows = await tx.all(
        "SELECT name, sha FROM refs WHERE repo_id = :repo_id LIMIT :limit", {"repo_id": repo_id, "limit": limit}
    )
    # Sorted here, because engines collate text differently and git sorts by bytes.
    return sorted(((row["name"], row["sha"]) for row in rows), key=lambda pair: pair[0].encode())


async def ref_names(tx: Tx, repo_id: str, kind: str, limit: int) -> list[str]:
    """The short names of at most `limit` branches ("heads") or tags ("tags")."""
    prefix = f"refs/{kind}/"
    rows = await tx.all(
        "SELECT name FROM refs WHERE repo_id = :repo_id AND name LIKE :pattern ORDER BY name LIMIT :limit",
        {"repo_id": repo_id, "pattern": f"{prefix}%", "limit": limit},
    )
    return sorted(row["name"].removeprefix(prefix) for row in rows)


async def refs_version(tx: Tx | Database, repo_id: str) -> str | None:
    """A value that changes whenever the refs change. It includes a time, because after a restore from backup the
    generations are reused for other refs.
    """
    row = await tx.one("SELECT generation, updated_at FROM repos WHERE id = :id", {"id": repo_id})
    return f"{row['generation']} {row['updated_at']}" if row else None


async def move_ref(
    tx: Tx,
    repo_id: str,
    name: str,
    old: str | None,
    new: str | None,
    *,
    commits: int | None = None,
    added: int | None = None,
) -> bool:
    """Move a ref from `old` to `new` and return True, or return False if it was not at `old`. None means that the ref
    does not exist. `commits` is the number of commits reachable from `new`, if known; `added` is the increase over
    `old`.
    """
    key_params = {"repo_id": repo_id, "name": name}
    if old is None:
        row = await tx.one(_CREATE_REF, {**key_params, "sha": new, "commits": commits})
    elif new is None:
        row = await tx.one(_DELETE_REF, {**key_params, "old": old})
    else:
        numbers = {"commits": commits, "added": added}
        row = await tx.one(_UPDATE_REF, {**key_params, **numbers, "old": old, "new": new})
    return row is not None


_CREATE_REF = insert_row(
    "INSERT INTO refs (repo_id, name, sha, commits)", "ON CONFLICT (repo_id, name) DO NOTHING RETURNING sha"
)
_DELETE_REF = "DELETE FROM refs WHERE repo_id = :repo_id AND name = :name AND sha = :old RETURNING sha"
_UPDATE_REF = """
    UPDATE refs SET sha = :new, commits = COALESCE(CAST(:commits AS BIGINT), commits + CAST(:added AS BIGINT))
    WHERE repo_id = :repo_id AND name = :name AND sha = :old RETURNING sha
"""


async def ref_with_commit_count(tx: Tx | Database, repo_id: str, name: str) -> tuple[str, int | None] | None:
    """The id a ref points to, and the number of commits reachable from it, if known."""
    row = await tx.one(
        "SELECT sha, commits FROM refs WHERE repo_id = :repo_id AND name = :name", {"repo_id": repo_id, "name": name}
    )
    return (row["sha"], row["commits"]) if row else None


async def known_counts(tx: Tx, repo_id: str) -> dict[str, int]:
    """The known numbers of commits reachable from refs, by the id that the ref points to."""
    rows = await tx.all(
        "SELECT sha, commits FROM refs WHERE repo_id = :repo_id AND commits IS NOT NULL", {"repo_id": repo_id}
    )
    return {row["sha"]: int(row["commits"]) for row in rows}


async def uncounted_refs(tx: Tx, after: tuple[str, str], limit: int) -> list[tuple[str, str, str]]:
    """Repo, name and id of refs whose commits were not counted, starting after (repo, name)."""
    rows = await tx.all(
        """
        SELECT repo_id, name, sha FROM refs WHERE commits IS NULL AND (repo_id, name) > (:repo_id, :name)
        ORDER BY repo_id, name LIMIT :limit
        """,
        {"repo_id": after[0], "name": after[1], "limit": limit},
    )
    return [(row["repo_id"], row["name"], row["sha"]) for row in rows]


async def set_count(tx: Tx, repo_id: str, name: str, sha: str, commits: int) -> None:
    """Store the number of commits of a ref, if it still points to `sha`."""
    await tx.exec(
        "UPDATE refs SET commits = :commits WHERE repo_id = :repo_id AND name = :name AND sha = :sha",
        {"repo_id": repo_id, "name": name, "sha": sha, "commits": commits},
    )


# The owner's current name by sub-queries: an UPDATE cannot join in SQLite's RETURNING.
_CHANGED = REPO.replace("r.", "").replace(
    "COALESCE(u.name, o.name)",
    """COALESCE(
        (SELECT u.name FROM users u WHERE owner_kind = 'user' AND u.id = owner_id),
        (SELECT o.name FROM organizations o WHERE owner_kind = 'org' AND o.id = owner_id)
    )""",
)
_SET_HEAD = f"UPDATE repos SET head_sha = :sha, card = :card, tags = :tags WHERE id = :id RETURNING {_CHANGED}"


async def set_head(tx: Tx, repo_id: str, sha: str | None, card: Card) -> Repo | None:
    """Set the head and its card, and return the repo; None if it was deleted."""
    row = await tx.one(_SET_HEAD, {"id": repo_id, "sha": sha, "card": card.data_json, "tags": card.tags_json})
    return Repo(*row) if row else None
