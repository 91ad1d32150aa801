"""SQL conditions that decide whether a webhook (`webhooks w`) may report on a repo, and statements for grants of apps.

A user's webhook has the permissions of that user. An organization's webhook may read the organization's repos and
public repos, regardless of which admin created it. The webhook of an app is also limited to the current grant of that
app: the user's consent, or the organization's token exchange (attack W41). A fine-grained personal token is limited in
the same way. The conditions are checked at fan-out and
again right before sending (attacks W30, W31).
"""

import json
from collections.abc import Iterable

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import PERSONAL_CLIENT
from hubgate.server.accounts.roles import Role
from hubgate.server.accounts.store import current_membership_sql
from hubgate.server.scopes import parse_scopes
from hubgate.server.storage.database import Row, Tx
from hubgate.server.storage.sqltext import RowStatement, Value
from hubgate.server.webhooks.management.store import COLUMNS, webhook_of
from hubgate.server.webhooks.model import ENABLED, Grant, Webhook
from hubgate.server.webhooks.permissions.token_store import limited

_WEBHOOK_SCOPES = Action.ACCOUNT_WRITE_WEBHOOKS.rule.scopes
_READ_SCOPES, _CREATED_SCOPES = Action.REPO_SEE.rule.scopes, Action.REPO_SEE.rule.creator_scopes


def _scoped(names: tuple[str, ...], *columns: str) -> str:
    """The condition that one of the scopes is in all the columns."""
    per_scope = (" AND ".join(f"(' ' || {column} || ' ') LIKE '% {name} %'" for column in columns) for name in names)
    return f"({' OR '.join(f'({each})' for each in per_scope)})"


def _sees(repo: str, *columns: str) -> str:
    """The condition that the scopes allow reading private repos, or this repo because the app created it."""
    created = f"{_scoped(_CREATED_SCOPES, *columns)} AND EXISTS ({_CREATED_BY_APP.format(repo=repo)})"
    return f"({_scoped(_READ_SCOPES, *columns)} OR ({created}))"


_CREATED_BY_APP = "SELECT 1 FROM repos gr WHERE gr.id = {repo} AND gr.creator_client = w.client_id"
# The organizations of a consent `gc` in which the user has been a member since the consent.
_GRANTED_ORG = f"""
    SELECT 1 FROM consent_organizations go JOIN memberships gm ON {current_membership_sql("gc", "go", "gm")}
    WHERE go.consent_id = gc.id AND go.org_id =
"""


def _consented(private: str, owner: str, repo: str) -> str:
    manages_webhooks = f"{_scoped(_WEBHOOK_SCOPES, 'go.scopes')} AND gm.role = {int(Role.ADMIN)}"
    return f"""
        EXISTS (
            SELECT 1 FROM consents gc
            WHERE gc.user_id = w.granted_by AND gc.client_id = w.client_id AND {_scoped(_WEBHOOK_SCOPES, "gc.scopes")}
                AND (w.org_id IS NULL OR EXISTS ({_GRANTED_ORG} w.org_id AND {manages_webhooks}))
                AND ({private} = 0
                    OR (gc.user_id = {owner} AND {_sees(repo, "gc.scopes", "w.granted_scopes")})
                    OR EXISTS ({_GRANTED_ORG} {owner} AND {_sees(repo, "gc.scopes", "go.scopes", "w.granted_scopes")}))
        )
    """


# An app may exchange tokens for the scopes that are in all of these columns. The scopes that the organization's admins
# allow are a JSON list, converted here to names separated by spaces.
_ALLOWED = "REPLACE(REPLACE(REPLACE(REPLACE(ga.allowed_scopes, '[', ''), ']', ''), ',', ''), '\"', '')"
_EXCHANGEABLE_COLUMNS = ("w.granted_scopes", "ga.scopes", f"COALESCE({_ALLOWED}, ga.scopes)")
_ROLE_ALLOWED = f"""(ga.allowed_roles IS NULL OR ga.allowed_roles LIKE '%"{Role.ADMIN.label}"%')"""

# Start times identify the membership, the plan and the token exchange. They are compared for equality only, because the
# clocks of machines differ.
_EXCHANGED_UNDER = "gm.joined_at || ' ' || gx.plan_since || ' ' || ga.exchange_since"
_SELECT_EXCHANGED_UNDER = f"""
    SELECT {_EXCHANGED_UNDER}
    FROM memberships gm JOIN organizations gx ON gx.id = gm.org_id JOIN apps ga ON ga.org_id = gx.id
    WHERE gm.org_id = w.org_id AND gm.user_id = :granted_by AND ga.client_id = :client_id
"""


def _exchanged(private: str, owner: str, repo: str) -> str:
    """The condition that an exchanged token would still be valid (`oauth/tokens/store.EXCHANGE_STILL_VALID`) and that
    the app could get another: a token soon expires, a webhook does not.
    """
    return f"""
        EXISTS (
            SELECT 1 FROM memberships gm JOIN organizations gx ON gx.id = gm.org_id JOIN apps ga ON ga.org_id = gx.id
            JOIN users gu ON gu.id = gm.user_id AND gu.email_verified_at IS NOT NULL
            WHERE gm.org_id = w.org_id AND gm.user_id = w.granted_by AND gm.role = {int(Role.ADMIN)}
                AND {_EXCHANGED_UNDER} = w.granted_under AND gx.plan = 'enterprise'
                AND ga.client_id = w.client_id AND ga.token_exchange = 1 AND ga.paused = 0 AND ga.confidential = 1
                AND {_scoped(_WEBHOOK_SCOPES, *_EXCHANGEABLE_COLUMNS)} AND {_ROLE_ALLOWED}
                AND ({private} = 0 OR (gx.id = {owner} AND {_sees(repo, *_EXCHANGEABLE_COLUMNS)}))
        )
    """


def _limited(private: str, owner: str, repo: str) -> str:
    return limited(
        private,
        owner,
        repo,
        lambda scopes: _scoped(_WEBHOOK_SCOPES, scopes),
        lambda scopes: _sees(repo, scopes),
    )


def _grant_allows(private: str, owner: str, repo: str) -> str:
    return f"""
        (w.client_id IS NULL OR CASE w.grant_kind WHEN 'consent' THEN {_consented(private, owner, repo)}
            WHEN 'token' THEN {_limited(private, owner, repo)}
            ELSE {_exchanged(private, owner, repo)} END)
    """


def _owner_sees(private: str, owner: str) -> str:
    return f"""
        (CAST({private} AS bigint) = 0 OR w.user_id = {owner} OR w.org_id = {owner}
            OR EXISTS (SELECT 1 FROM memberships m WHERE m.org_id = {owner} AND m.user_id = w.user_id))
    """


def may_read(private: str, owner: str, repo: str) -> str:
    """The condition that a webhook may report on a repo. The parameters are SQL expressions for its current state."""
    return f"""
        {_owner_sees(private, owner)}
        AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id IN (w.user_id, w.granted_by) AND u.disabled_at IS NOT NULL)
        AND {_grant_allows(private, owner, repo)}
    """


def could_read(private: str, owner: str, repo: str) -> str:
    """The condition that a webhook may report on the repo as it was at the event. An event of a private repo is
    sent only to webhooks that may read that repo as a private repo, even if it is public at fan-out.
    """
    return f"{_owner_sees(private, owner)} AND {_grant_allows(private, owner, repo)}"


# The condition that the app of a webhook may still manage webhooks of this owner; true without an app.
GRANT_IS_VALID = _grant_allows("0", "''", "''")


async def is_grant_valid(tx: Tx, webhook_id: str) -> bool:
    return (
        await tx.one(f"SELECT 1 FROM webhooks w WHERE w.id = :id AND {GRANT_IS_VALID}", {"id": webhook_id}) is not None
    )


class AppWebhook(Struct, frozen=True):
    """An enabled webhook of an app, and the scopes that allowed its grant to read private repos at the last check."""

    webhook: Webhook
    read_scopes: frozenset[str]
    # Whether the grant still allows the app to manage webhooks.
    is_grant_valid: bool


_APP_WEBHOOKS = f"""
    SELECT {COLUMNS}, w.reach, CASE WHEN {GRANT_IS_VALID} THEN 1 ELSE 0 END AS is_grant_valid
    FROM webhooks w WHERE w.client_id IS NOT NULL AND w.state = '{ENABLED}'
"""


async def app_webhooks(tx: Tx, after: str, limit: int) -> list[AppWebhook]:
    """Enabled webhooks of apps after an id, ordered by id."""
    sql = f"{_APP_WEBHOOKS} AND w.id > :after ORDER BY w.id LIMIT :limit"
    return _app_webhooks(await tx.all(sql, {"after": after, "limit": limit}))


async def app_webhooks_of(tx: Tx, user_id: str, client_id: str) -> list[AppWebhook]:
    """Enabled webhooks that an app manages under a user's grant."""
    sql = f"{_APP_WEBHOOKS} AND w.client_id = :client_id AND w.granted_by = :user_id ORDER BY w.id"
    return _app_webhooks(await tx.all(sql, {"client_id": client_id, "user_id": user_id}))


async def app_webhook(tx: Tx, webhook_id: str) -> list[AppWebhook]:
    """The webhook as a list; empty if it is no longer an enabled webhook of an app."""
    return _app_webhooks(await tx.all(f"{_APP_WEBHOOKS} AND w.id = :id", {"id": webhook_id}))


def _app_webhooks(rows: Iterable[Row]) -> list[AppWebhook]:
    return [
        AppWebhook(webhook_of(row), frozenset((row["reach"] or "").split()), bool(row["is_grant_valid"]))
        for row in rows
    ]


async def set_grant(tx: Tx, webhook: Webhook, read_scopes: Iterable[str], now: int) -> None:
    await tx.exec(
        f"""
        UPDATE webhooks AS w SET client_id = :client_id, grant_kind = :grant_kind, granted_by = :granted_by,
            granted_scopes = :granted_scopes, granted_at = :now, granted_under = ({_SELECT_EXCHANGED_UNDER}),
            taken_over = :taken_over, reach = :reach
        WHERE id = :id
        """,
        {
            "id": webhook.id,
            "client_id": webhook.client_id,
            "grant_kind": webhook.grant_kind,
            "granted_by": webhook.granted_by,
            "granted_scopes": webhook.granted_scopes,
            "taken_over": webhook.taken_over,
            "reach": " ".join(sorted(read_scopes)),
            "now": now,
        },
    )


async def exchanged_under(tx: Tx, org_id: str | None, grant: Grant) -> str | None:
    """The value of `granted_under` that `set_grant` would store for a webhook of this organization."""
    row = await tx.one(
        f"SELECT ({_SELECT_EXCHANGED_UNDER}) AS granted_under FROM (SELECT CAST(:org_id AS text) AS org_id) w",
        {"org_id": org_id, "granted_by": grant.user_id, "client_id": grant.client_id},
    )
    return row["granted_under"] if row else None


async def clear_grant(tx: Tx, webhook_id: str) -> None:
    await tx.exec(
        """
        UPDATE webhooks SET client_id = NULL, grant_kind = NULL, granted_by = NULL, granted_scopes = NULL,
            granted_at = NULL, granted_under = NULL, taken_over = 0, reach = NULL
        WHERE id = :id
        """,
        {"id": webhook_id},
    )


_CONSENTED = RowStatement(
    f"""
    SELECT c.user_id, c.client_id, c.scopes, co.org_id, co.scopes AS org_scopes FROM consents c
    LEFT JOIN consent_organizations co ON co.consent_id = c.id AND EXISTS (
        SELECT 1 FROM memberships m WHERE {current_membership_sql()}
    )
    WHERE c.user_id = :user_id AND c.client_id = :client_id
    """,
    {"user_id": "text", "client_id": "text"},
)


_EXCHANGEABLE = RowStatement(
    "SELECT a.client_id, a.scopes, a.allowed_scopes FROM apps a WHERE a.client_id = :client_id", {"client_id": "text"}
)


async def consents_of(tx: Tx, grants: Iterable[Grant]) -> dict[tuple[str, str], list[Row]]:
    """Current consents by user and client: their scopes, and org_id and org_scopes of each organization they cover."""
    keys = sorted({(grant.user_id, grant.client_id) for grant in grants})
    found: dict[tuple[str, str], list[Row]] = {}
    rows = [{"user_id": user_id, "client_id": client_id} for user_id, client_id in keys]
    for row in await tx.each(_CONSENTED, rows) if rows else ():
        found.setdefault((row["user_id"], row["client_id"]), []).append(row)
    return found


async def exchangeable_scopes(tx: Tx, grants: Iterable[Grant]) -> dict[str, frozenset[str]]:
    """The scopes for which apps may exchange tokens, by client."""
    rows: list[dict[str, Value]] = [{"client_id": each} for each in sorted({grant.client_id for grant in grants})]
    return {row["client_id"]: _exchangeable(row) for row in (await tx.each(_EXCHANGEABLE, rows) if rows else ())}


def _exchangeable(row: Row) -> frozenset[str]:
    scopes = frozenset(parse_scopes(row["scopes"]))
    return scopes if row["allowed_scopes"] is None else scopes.intersection(json.loads(row["allowed_scopes"]))


async def set_read_scopes(tx: Tx, webhook_id: str, read_scopes: Iterable[str]) -> None:
    sql = "UPDATE webhooks SET reach = :reach WHERE id = :id"
    await tx.exec(sql, {"id": webhook_id, "reach": " ".join(sorted(read_scopes))})


async def app_name(tx: Tx, grant: Grant) -> str:
    """The name of the app or token; of an app also from its consent. Its client id if it no longer exists."""
    row = await tx.one(
        """
        SELECT COALESCE((SELECT a.name FROM apps a WHERE a.client_id = :client_id), (
            SELECT c.app_name FROM consents c WHERE c.client_id = :client_id AND c.user_id = :user_id
        ), (SELECT t.name FROM access_tokens t WHERE t.id = :token_id AND t.user_id = :user_id)) AS name
        """,
        {
            "client_id": grant.client_id,
            "user_id": grant.user_id,
            "token_id": grant.client_id.removeprefix(PERSONAL_CLIENT),
        },
    )
    return _in_one_line((row["name"] if row else None) or "") or grant.client_id


def _in_one_line(name: str) -> str:
    """An app's name without line breaks and invisible characters, for mail: the developer chooses it (attack O33)."""
    return " ".join("".join(char if char.isprintable() else " " for char in name).split())
