"""SQL statements on the limits of fine-grained tokens."""

from hubgate.server.accounts.tokens.limits import NewLimit, TokenLimit
from hubgate.server.scopes import join_scopes
from hubgate.server.storage.database import Database, Tx

COLUMNS = """l.token_id, COALESCE(r.type, l.kind) AS type, l.target_id,
    CASE WHEN r.id IS NULL THEN COALESCE(u.name, o.name) ELSE COALESCE(u.name, o.name) || '/' || r.name END AS name,
    l.scopes"""
# Only places that the user still reaches: the name of a private repo is not shown to a former member.
_LIMITS = f"""
    SELECT {COLUMNS} FROM token_limits l
    LEFT JOIN repos r ON l.kind = 'repo' AND r.id = l.target_id
    LEFT JOIN users u ON u.id = COALESCE(r.owner_id, l.target_id)
    LEFT JOIN organizations o ON o.id = COALESCE(r.owner_id, l.target_id)
    LEFT JOIN memberships m ON m.org_id = o.id AND m.user_id = :user_id
    WHERE {{condition}} AND CASE l.kind
        WHEN 'user' THEN CASE WHEN u.id = :user_id THEN 1 ELSE 0 END
        WHEN 'org' THEN CASE WHEN m.joined_at = l.joined_at THEN 1 ELSE 0 END
        ELSE CASE WHEN r.owner_id = :user_id OR m.joined_at = l.joined_at
            OR (m.joined_at IS NULL AND r.private = 0) THEN 1 ELSE 0 END
        END = 1
    ORDER BY l.token_id, l.kind, l.target_id
"""
_OF_TOKEN = _LIMITS.format(condition="l.token_id = :token_id")
_OF_TOKENS = _LIMITS.format(
    condition="""l.token_id IN (
        SELECT t.id FROM access_tokens t WHERE t.user_id = :user_id AND t.id < :before ORDER BY t.id DESC LIMIT :limit
    )"""
)


async def find(db: Database, user_id: str, token_id: str) -> tuple[TokenLimit, ...]:
    """The places that a token of this user reaches now."""
    return tuple(TokenLimit(*row) for row in await db.few(_OF_TOKEN, {"user_id": user_id, "token_id": token_id}))


async def of_token(tx: Tx, user_id: str, token_id: str) -> tuple[TokenLimit, ...]:
    """`find` in a unit of work."""
    return tuple(TokenLimit(*row) for row in await tx.all(_OF_TOKEN, {"user_id": user_id, "token_id": token_id}))


async def of_tokens(tx: Tx, user_id: str, before: str, limit: int) -> dict[str, tuple[TokenLimit, ...]]:
    """The same for a page of a user's tokens, by token id."""
    rows = await tx.all(_OF_TOKENS, {"user_id": user_id, "before": before, "limit": limit})
    found: dict[str, tuple[TokenLimit, ...]] = {}
    for row in rows:
        place = TokenLimit(*row)
        found[place.token_id] = (*found.get(place.token_id, ()), place)
    return found


async def count(tx: Tx, user_id: str) -> int:
    """The number of places of all tokens of a user, also of those that the user no longer reaches."""
    sql = (
        "SELECT count(*) AS n FROM access_tokens t JOIN token_limits l ON l.token_id = t.id WHERE t.user_id = :user_id"
    )
    row = await tx.one(sql, {"user_id": user_id})
    return int(row["n"]) if row else 0


async def add(tx: Tx, token_id: str, user_id: str, place: NewLimit) -> None:
    await tx.exec(
        """
        INSERT INTO token_limits (token_id, target_id, kind, scopes, joined_at) VALUES (
            :token_id, :target_id, :kind, :scopes,
            (SELECT m.joined_at FROM memberships m WHERE m.org_id = :owner_id AND m.user_id = :user_id)
        )
        """,
        {
            "token_id": token_id,
            "target_id": place.target_id,
            "kind": place.kind,
            "scopes": join_scopes(place.scopes),
            "owner_id": place.owner_id,
            "user_id": user_id,
        },
    )
