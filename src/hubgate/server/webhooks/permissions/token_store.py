"""SQL for webhooks that fine-grained personal tokens manage: the conditions of `store.py`, and the limits of tokens."""

from collections.abc import Callable, Iterable

from hubgate.server.access.identity import PERSONAL_CLIENT
from hubgate.server.accounts.roles import Role
from hubgate.server.storage.database import Row, Tx
from hubgate.server.storage.sqltext import RowStatement, Value
from hubgate.server.webhooks.model import Grant

TOKEN_OF_WEBHOOK = f"substr(w.client_id, {len(PERSONAL_CLIENT) + 1})"


def limited(
    private: str, owner: str, repo: str, manages_webhooks: Callable[[str], str], sees: Callable[[str], str]
) -> str:
    """The condition that the token of a webhook is valid and may manage webhooks of this owner, and that it reaches the
    repo. A background job marks expired tokens (`accounts/tokens/expiry.py`). The last parameters are conditions on a
    column of scopes.
    """
    return f"""
        EXISTS (
            SELECT 1 FROM access_tokens gt JOIN token_limits gl
                ON gl.token_id = gt.id AND gl.target_id = COALESCE(w.org_id, gt.user_id)
            WHERE gt.id = {TOKEN_OF_WEBHOOK} AND gt.user_id = w.granted_by AND gt.expired = 0
                AND {manages_webhooks("gl.scopes")}
                AND (w.org_id IS NULL OR EXISTS (
                    SELECT 1 FROM memberships gm WHERE gm.org_id = w.org_id AND gm.user_id = gt.user_id
                        AND gm.joined_at = gl.joined_at AND gm.role = {int(Role.ADMIN)}))
                AND ({private} = 0 OR EXISTS (
                    SELECT 1 FROM token_limits gp
                    LEFT JOIN memberships gm ON gm.org_id = {owner} AND gm.user_id = gt.user_id
                    WHERE gp.token_id = gt.id AND gp.target_id IN ({owner}, {repo}) AND {sees("gp.scopes")}
                        AND ({owner} = gt.user_id OR gm.joined_at = gp.joined_at)))
        )
    """


_LIMITS = RowStatement(
    f"""
    SELECT '{PERSONAL_CLIENT}' || t.id AS client_id, l.kind, l.target_id, l.scopes,
        COALESCE(r.owner_id, l.target_id) AS owner_id
    FROM access_tokens t JOIN token_limits l ON l.token_id = t.id
    LEFT JOIN repos r ON l.kind = 'repo' AND r.id = l.target_id
    LEFT JOIN memberships m ON m.org_id = COALESCE(r.owner_id, l.target_id) AND m.user_id = t.user_id
    WHERE t.id = :id AND t.user_id = :user_id
        AND (COALESCE(r.owner_id, l.target_id) = t.user_id OR m.joined_at = l.joined_at)
    """,
    {"id": "text", "user_id": "text"},
)


async def limits_of(tx: Tx, grants: Iterable[Grant]) -> dict[str, list[Row]]:
    """The places that tokens reach as members or owners, by client id: kind, target_id, scopes and owner_id."""
    keys = sorted({(grant.client_id.removeprefix(PERSONAL_CLIENT), grant.user_id) for grant in grants})
    rows: list[dict[str, Value]] = [{"id": token_id, "user_id": user_id} for token_id, user_id in keys]
    found: dict[str, list[Row]] = {}
    for row in await tx.each(_LIMITS, rows) if rows else ():
        found.setdefault(row["client_id"], []).append(row)
    return found
