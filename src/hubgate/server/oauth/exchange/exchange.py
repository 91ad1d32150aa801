"""Token exchange: creates the token and its audit log entry in one transaction, or performs a dry run."""

import secrets
from typing import Any

from msgspec import Struct

from hubgate.server.accounts.emails import LONGEST_EMAIL, check_email
from hubgate.server.accounts.model import User, Visitor
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.errors import HubError, TooManyRequests, Unprocessable
from hubgate.server.logs import redacted
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.claims import places_for
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import InvalidClient, OAuthError, invalid_request
from hubgate.server.oauth.exchange import store
from hubgate.server.oauth.exchange.model import Facts, Granted, Refused
from hubgate.server.oauth.exchange.policy import decide
from hubgate.server.oauth.tokens import issuance
from hubgate.server.oauth.tokens.issuance import TokenDetails
from hubgate.server.storage.database import ConstraintViolated, Tx
from hubgate.server.throttle.rate_limiter import Limit

DAY_SECONDS = 24 * 60 * 60


class ExchangeResult(Struct, frozen=True):
    user: User
    access_token: str
    scopes: str
    lifetime: int


async def exchange(oauth: OAuth, app: App, email: str, scope: str | None, visitor: Visitor) -> ExchangeResult:
    """Issue a token or raise the error for the app; both are audited if an organization owns the app."""
    now = oauth.clock()

    async def unit(tx: Tx) -> ExchangeResult | HubError:
        verdict = await decide_in(tx, oauth, app.client_id, email, scope, visitor.ip)
        quota = app.exchange.daily_quota
        if isinstance(verdict, Granted) and quota is not None:
            limit = quota_of(quota)
            if not await oauth.limiter.count_in(tx, limit, app.client_id):
                verdict = quota_exceeded(limit, await oauth.limiter.seconds_left(tx, limit, app.client_id))
        if isinstance(verdict, Refused):
            await _record_audit(tx, app, _refusal_entry(email, verdict), visitor, now)
            return verdict.error
        return await _issue_token(tx, app, verdict, visitor, now)

    try:
        outcome = await oauth.db.write(unit)
    except ConstraintViolated:
        # The member or the organization was deleted concurrently. Decide again without them.
        outcome = await oauth.db.write(unit)
    if isinstance(outcome, HubError):
        raise outcome
    return outcome


async def dry_run(oauth: OAuth, app: App, email: str, scope: str | None, ip: str | None) -> Granted | Refused:
    """Decide as an exchange would now; nothing is issued, counted or recorded.

    Without `ip`, allowed networks are not checked.
    """
    try:
        check_subject(email)
    except OAuthError as refusal:
        return Refused(refusal, refusal.message)

    async def unit(tx: Tx) -> Granted | Refused:
        verdict = await decide_in(tx, oauth, app.client_id, email, scope, ip)
        quota = app.exchange.daily_quota
        if isinstance(verdict, Granted) and quota is not None:
            limit = quota_of(quota)
            if await oauth.limiter.is_full(tx, limit, app.client_id):
                return quota_exceeded(limit, await oauth.limiter.seconds_left(tx, limit, app.client_id))
        return verdict

    return await oauth.db.read(unit)


async def record_refusal(oauth: OAuth, app: App, subject: str, error: HubError, visitor: Visitor) -> None:
    """Record a malformed request of an authenticated app in the audit log."""
    now, entry = oauth.clock(), _refusal_entry(subject, Refused(error, error.message))
    await oauth.db.write(lambda tx: _record_audit(tx, app, entry, visitor, now))


def check_subject(email: str) -> str:
    """Return `email` if it has an @, or raise invalid_request (attack O46)."""
    if "@" not in email:
        raise invalid_request("subject_token must be the e-mail address of a member.", "subject_token")
    return email


async def decide_in(
    tx: Tx, oauth: OAuth, client_id: str, email: str, scope: str | None, ip: str | None
) -> Granted | Refused:
    """Decide about an exchange. The member is always looked up, so that timing reveals nothing."""
    found = await store.app_plan_and_member(tx, client_id, _stored_form(email))
    if found is None:
        gone = InvalidClient(basic=True)
        return Refused(gone, gone.message)
    app, plan, member = found
    return decide(oauth, Facts(app, plan, member, ip, scope))


def _stored_form(email: str) -> str:
    """The address as accounts store it; empty, which matches nobody, if no account can have it (attack O45)."""
    try:
        return check_email(email)
    except Unprocessable:
        return ""


def quota_of(limit: int) -> Limit:
    return Limit("token exchange", limit, DAY_SECONDS)


def quota_exceeded(quota: Limit, seconds_left: int) -> Refused:
    text = f"The daily quota of {quota.max_hits:,} exchanges is used up."
    return Refused(TooManyRequests(text, retry_after=seconds_left, code="temporarily_unavailable"), text)


async def _issue_token(tx: Tx, app: App, given: Granted, visitor: Visitor, now: int) -> ExchangeResult:
    user, scopes = given.member.user, " ".join(given.scopes)
    details = TokenDetails(
        client_id=app.client_id,
        user_id=user.id,
        consent_id=None,
        org_id=app.org_id,
        scopes=scopes,
        family=secrets.token_hex(12),
        supersedes=None,
        lifetime=app.exchange.duration,
        claims=places_for(app, ""),
    )
    access_token = await issuance.add_access_token(tx, details, now, since=given.member.since)
    data = {
        "result": "granted",
        "user": user.name,
        "userId": user.id,
        "scope": scopes,
        "tokenId": details.family,
        "expiresIn": details.lifetime,
    }
    await _record_audit(tx, app, (f"got a token for {user.name}", data), visitor, now)
    return ExchangeResult(user, access_token, scopes, details.lifetime)


def _refusal_entry(email: str, refused: Refused) -> tuple[str, dict[str, Any]]:
    error = refused.error.code or "invalid_request"
    entry = {"result": "refused", "error": error, "reason": refused.why}
    subject = _audited_subject(email)
    if not subject:
        return f"was refused a token: {refused.why}", entry
    return f"was refused a token for {subject}: {refused.why}", {**entry, "subject": subject}


def _audited_subject(email: str) -> str:
    """The subject for the audit log. Empty if it has no @: it may be a token sent by mistake, which admins must not
    read.
    """
    if "@" not in email:
        return ""
    return redacted("".join(character if character.isprintable() else "?" for character in email[:LONGEST_EMAIL]))


async def _record_audit(tx: Tx, app: App, entry: tuple[str, dict[str, Any]], visitor: Visitor, now: int) -> None:
    if app.org_id is None:
        return
    actor = Actor(
        name=app.name,
        ip=visitor.ip,
        user_agent=visitor.user_agent,
        oauth={"clientId": app.client_id, "name": app.name},
    )
    message, data = entry
    await record(tx, app.org_id, EntryType.OAUTH_TOKEN, message, actor, now, data)
