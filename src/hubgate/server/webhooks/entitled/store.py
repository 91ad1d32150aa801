"""Whether a webhook may report on a repo, as a condition of a statement over `webhooks w`.

A user's webhook reads as that user, an organization's as the organization: its own repos and public ones, whichever
admin created it. A webhook that an app created reads no more than the grant of that app, as it is now: the user's
consent, or the organization's token exchange (attack W41). Checked when an event is fanned out and again right before
it is sent (attacks W30, W31).
"""

from hubgate.server.access.actions import Action
from hubgate.server.accounts.roles import Role
from hubgate.server.storage.database import Tx

_WEBHOOKS = Action.ACCOUNT_WRITE_WEBHOOKS.rule.scopes
_READS, _CREATED = Action.REPO_SEE.rule.scopes, Action.REPO_SEE.rule.created


def _scoped(names: tuple[str, ...], *columns: str) -> str:
    """Whether all the columns hold one of the scopes."""
    held = (" AND ".join(f"(' ' || {column} || ' ') LIKE '% {name} %'" for column in columns) for name in names)
    return f"({' OR '.join(f'({each})' for each in held)})"


def _sees(repo: str, *columns: str) -> str:
    """Whether the scopes open a private repo, or this one because the app created it."""
    created = f"{_scoped(_CREATED, *columns)} AND EXISTS ({_CREATED_BY_APP.format(repo=repo)})"
    return f"({_scoped(_READS, *columns)} OR ({created}))"


_CREATED_BY_APP = "SELECT 1 FROM repos gr WHERE gr.id = {repo} AND gr.creator_client = w.client_id"
# The organizations of a consent `gc`, for as long as the membership lasts.
_GRANTED = """
    SELECT 1 FROM consent_organizations go JOIN memberships gm
        ON gm.org_id = go.org_id AND gm.user_id = gc.user_id AND gm.joined_at = go.joined_at
    WHERE go.consent_id = gc.id AND go.org_id =
"""


def _consented(private: str, owner: str, repo: str) -> str:
    at_home = f"{_scoped(_WEBHOOKS, 'go.scopes')} AND gm.role = {int(Role.ADMIN)}"
    return f"""
        EXISTS (
            SELECT 1 FROM consents gc
            WHERE gc.user_id = w.granted_by AND gc.client_id = w.client_id AND {_scoped(_WEBHOOKS, "gc.scopes")}
                AND (w.org_id IS NULL OR EXISTS ({_GRANTED} w.org_id AND {at_home}))
                AND ({private} = 0
                    OR (gc.user_id = {owner} AND {_sees(repo, "gc.scopes", "w.granted_scopes")})
                    OR EXISTS ({_GRANTED} {owner} AND {_sees(repo, "gc.scopes", "go.scopes", "w.granted_scopes")}))
        )
    """


# What the organization lets its app exchange tokens for, now: the app's scopes, less those its admins do not allow. A
# list is stored as JSON.
_ALLOWED = "REPLACE(REPLACE(REPLACE(REPLACE(ga.allowed_scopes, '[', ''), ']', ''), ',', ''), '\"', '')"
_EXCHANGEABLE = ("w.granted_scopes", "ga.scopes", f"COALESCE({_ALLOWED}, ga.scopes)")
_ROLE_ALLOWED = f"""(ga.allowed_roles IS NULL OR ga.allowed_roles LIKE '%"{Role.ADMIN.label}"%')"""


def _exchanged(private: str, owner: str, repo: str) -> str:
    """The conditions under which an exchanged token lives (`oauth/tokens/store.STILL_UNDER`), and those under which the
    app would get another: a token soon expires, a webhook does not.
    """
    return f"""
        EXISTS (
            SELECT 1 FROM memberships gm JOIN organizations gx ON gx.id = gm.org_id JOIN apps ga ON ga.org_id = gx.id
            JOIN users gu ON gu.id = gm.user_id AND gu.email_verified_at IS NOT NULL
            WHERE gm.org_id = w.org_id AND gm.user_id = w.granted_by AND gm.role = {int(Role.ADMIN)}
                AND gm.joined_at <= w.granted_at AND gx.plan = 'enterprise' AND gx.plan_since <= w.granted_at
                AND ga.client_id = w.client_id AND ga.token_exchange = 1 AND ga.paused = 0 AND ga.confidential = 1
                AND ga.exchange_since <= w.granted_at AND {_scoped(_WEBHOOKS, *_EXCHANGEABLE)} AND {_ROLE_ALLOWED}
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


def may_know(private: str, owner: str, repo: str) -> str:
    """The condition, with the expressions that stand for what the repo is now."""
    return f"""
        {_owner_sees(private, owner)}
        AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id IN (w.user_id, w.granted_by) AND u.disabled_at IS NOT NULL)
        AND {_under_grant(private, owner, repo)}
    """


def might_know(private: str, owner: str, repo: str) -> str:
    """The same for the moment of the event, as far as it is known: what happened while a repo was private stays with
    those who could read it then, however late it is fanned out.
    """
    return f"{_owner_sees(private, owner)} AND {_under_grant(private, owner, repo)}"


_ALIVE = _under_grant("0", "''", "''")


async def is_under_grant(tx: Tx, webhook_id: str) -> bool:
    """Whether the app that created it may still have webhooks there; true where no app did."""
    return await tx.one(f"SELECT 1 FROM webhooks w WHERE w.id = :id AND {_ALIVE}", {"id": webhook_id}) is not None
