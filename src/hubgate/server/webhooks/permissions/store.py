"""SQL conditions over `webhooks w`: whether a webhook may report on a repo.

A user's webhook has the permissions of that user. An organization's webhook may read the organization's repos and
public repos, regardless of which admin created it. The webhook of an app is also limited to the present grant of that
app: the user's consent, or the organization's token exchange (attack W41). The conditions are checked at fan-out and
again right before sending (attacks W30, W31).
"""

from hubgate.server.access.actions import Action
from hubgate.server.accounts.roles import Role
from hubgate.server.accounts.store import under_membership
from hubgate.server.storage.database import Tx

_WEBHOOK_SCOPES = Action.ACCOUNT_WRITE_WEBHOOKS.rule.scopes
_READ_SCOPES, _CREATED_SCOPES = Action.REPO_SEE.rule.scopes, Action.REPO_SEE.rule.created


def _scoped(names: tuple[str, ...], *columns: str) -> str:
    """The condition that one of the scopes is in all the columns."""
    per_scope = (" AND ".join(f"(' ' || {column} || ' ') LIKE '% {name} %'" for column in columns) for name in names)
    return f"({' OR '.join(f'({each})' for each in per_scope)})"


def _sees(repo: str, *columns: str) -> str:
    """The condition that the scopes allow reading private repos, or this repo because the app created it."""
    created = f"{_scoped(_CREATED_SCOPES, *columns)} AND EXISTS ({_CREATED_BY_APP.format(repo=repo)})"
    return f"({_scoped(_READ_SCOPES, *columns)} OR ({created}))"


_CREATED_BY_APP = "SELECT 1 FROM repos gr WHERE gr.id = {repo} AND gr.creator_client = w.client_id"
# The organizations of a consent `gc` whose membership has not ended since the consent.
_GRANTED_ORG = f"""
    SELECT 1 FROM consent_organizations go JOIN memberships gm ON {under_membership("gc", "go", "gm")}
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


# The scopes for which the app may exchange tokens now: the app's scopes that the organization's admins allow, stored as
# a JSON list.
_ALLOWED = "REPLACE(REPLACE(REPLACE(REPLACE(ga.allowed_scopes, '[', ''), ']', ''), ',', ''), '\"', '')"
_EXCHANGEABLE = ("w.granted_scopes", "ga.scopes", f"COALESCE({_ALLOWED}, ga.scopes)")
_ROLE_ALLOWED = f"""(ga.allowed_roles IS NULL OR ga.allowed_roles LIKE '%"{Role.ADMIN.label}"%')"""

# Start times identify the membership, the plan and the token exchange. They are compared for equality only, because the
# clocks of machines differ.
_EXCHANGED_UNDER = "gm.joined_at || ' ' || gx.plan_since || ' ' || ga.exchange_since"
EXCHANGED_UNDER = f"""
    SELECT {_EXCHANGED_UNDER}
    FROM memberships gm JOIN organizations gx ON gx.id = gm.org_id JOIN apps ga ON ga.org_id = gx.id
    WHERE gm.org_id = w.org_id AND gm.user_id = :granted_by AND ga.client_id = :client_id
"""


def _exchanged(private: str, owner: str, repo: str) -> str:
    """The condition that an exchanged token would still be valid (`oauth/tokens/store.STILL_UNDER`) and that the app
    could get another: a token soon expires, a webhook does not.
    """
    return f"""
        EXISTS (
            SELECT 1 FROM memberships gm JOIN organizations gx ON gx.id = gm.org_id JOIN apps ga ON ga.org_id = gx.id
            JOIN users gu ON gu.id = gm.user_id AND gu.email_verified_at IS NOT NULL
            WHERE gm.org_id = w.org_id AND gm.user_id = w.granted_by AND gm.role = {int(Role.ADMIN)}
                AND {_EXCHANGED_UNDER} = w.granted_under AND gx.plan = 'enterprise'
                AND ga.client_id = w.client_id AND ga.token_exchange = 1 AND ga.paused = 0 AND ga.confidential = 1
                AND {_scoped(_WEBHOOK_SCOPES, *_EXCHANGEABLE)} AND {_ROLE_ALLOWED}
                AND ({private} = 0 OR (gx.id = {owner} AND {_sees(repo, *_EXCHANGEABLE)}))
        )
    """


def _under_grant(private: str, owner: str, repo: str) -> str:
    return f"""
        (w.client_id IS NULL OR CASE w.grant_kind WHEN 'consent' THEN {_consented(private, owner, repo)}
            ELSE {_exchanged(private, owner, repo)} END)
    """


def _owner_sees(private: str, owner: str) -> str:
    return f"""
        (CAST({private} AS bigint) = 0 OR w.user_id = {owner} OR w.org_id = {owner}
            OR EXISTS (SELECT 1 FROM memberships m WHERE m.org_id = {owner} AND m.user_id = w.user_id))
    """


def may_read(private: str, owner: str, repo: str) -> str:
    """The condition that a webhook may report on a repo. The parameters are SQL expressions for its present state."""
    return f"""
        {_owner_sees(private, owner)}
        AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id IN (w.user_id, w.granted_by) AND u.disabled_at IS NOT NULL)
        AND {_under_grant(private, owner, repo)}
    """


def could_read(private: str, owner: str, repo: str) -> str:
    """The same condition for the repo's state at the event: an event from when a repo was private is only sent to
    webhooks that could read it then, even if the repo is public at fan-out.
    """
    return f"{_owner_sees(private, owner)} AND {_under_grant(private, owner, repo)}"


# The condition that the app of a webhook may still manage webhooks of this owner; true without an app.
ALIVE = _under_grant("0", "''", "''")


async def is_under_grant(tx: Tx, webhook_id: str) -> bool:
    return await tx.one(f"SELECT 1 FROM webhooks w WHERE w.id = :id AND {ALIVE}", {"id": webhook_id}) is not None
