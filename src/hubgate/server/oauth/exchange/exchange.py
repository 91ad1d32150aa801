"""Token exchange: creates the token and its audit log entry in one transaction, or performs a dry run."""

import secrets
from typing import Any

from msgspec import Struct

from hubgate.server.accounts.emails import LONGEST_EMAIL, check_email
from hubgate.server.accounts.model import User, Visitor
from hubgate.server.audit import store as audit_store
from hubgate.server.audit.model import Actor, Entry, EntryType
from hubgate.server.audit.record import new_entry
from hubgate.server.errors import HubError, TooManyRequests, Unprocessable
from hubgate.server.logs import redacted
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.claims import places_for
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import InvalidClient, OAuthError, invalid_request
from hubgate.server.oauth.exchange import store
from hubgate.server.oauth.exchange.model import Facts, Granted, Refused, Subject
from hubgate.server.oauth.exchange.policy import decide
from hubgate.server.oauth.tokens import issuance
from hubgate.server.oauth.tokens import store as token_store
from hubgate.server.oauth.tokens.issuance import TokenDetails
from hubgate.server.oauth.tokens.model import AppToken
from hubgate.server.storage.database import ConstraintViolated, Tx
from hubgate.server.throttle.rate_limiter import Limit

DAY_SECONDS = 24 * 60 * 60

# The message and the data of an audit entry.
AuditText = tuple[str, dict[str, Any]]


class ExchangeResult(Struct, frozen=True):
    user: User
    access_token: str
    scopes: str
    lifetime: int


async def exchange(oauth: OAuth, subject: Subject, email: str, scope: str | None, visitor: Visitor) -> ExchangeResult:
    """Issue a token or raise the error for the app; both are audited if an organization owns the app.

    `subject` was read for this request. The statement that stores the token does nothing if it has changed since.
    """
    now, app = oauth.clock(), subject.app
    verdict = decide(oauth, Facts(subject, visitor.ip, scope))
    if isinstance(verdict, Refused):
        entry = _refusal_entry(email, verdict)
        await oauth.db.write(lambda tx: _record_audit(tx, app, entry, visitor, now))
        raise verdict.error
    if app.exchange.daily_quota is None and (issued := await _issue_at_once(oauth, subject, verdict, visitor, now)):
        return issued
    return await _decide_again(oauth, subject, email, scope, visitor, now)


async def _issue_at_once(
    oauth: OAuth, subject: Subject, given: Granted, visitor: Visitor, now: int
) -> ExchangeResult | None:
    """Store the token and its audit entry in one statement; None if the facts have changed since they were read."""
    app = subject.app
    text, token = _new_token(app, given, now)
    entry = _audit_entry(app, app.org_id or "", _grant_entry(app, given, token), visitor, now)
    try:
        added = await store.add_token(oauth.db, token, subject, entry)
    except ConstraintViolated:
        # The member or the organization is being deleted concurrently.
        return None
    return _result(app, given, text, token) if added else None


async def _decide_again(
    oauth: OAuth, subject: Subject, email: str, scope: str | None, visitor: Visitor, now: int
) -> ExchangeResult:
    """Decide in the transaction that stores the token, for an app with a quota or after a concurrent change. The secret
    may have been replaced since it was checked.
    """
    app = subject.app

    async def unit(tx: Tx) -> ExchangeResult | HubError:
        await store.lock_app(tx, app.client_id)
        found = await store.find_with_secret(tx, app.client_id, subject.secret, stored_form(email), now)
        current, verdict = _decide(oauth, app, found, scope, visitor.ip)
        quota = current.exchange.daily_quota
        if isinstance(verdict, Granted) and quota is not None:
            limit = quota_of(quota)
            if not await oauth.limiter.count_in(tx, limit, app.client_id):
                verdict = quota_exceeded(limit, await oauth.limiter.seconds_left(tx, limit, app.client_id))
        if isinstance(verdict, Refused):
            await _record_audit(tx, current, _refusal_entry(email, verdict), visitor, now)
            return verdict.error
        return await _issue_token(tx, current, verdict, visitor, now)

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
        # The member is always looked up, so that timing reveals nothing.
        found = await store.find(tx, app.client_id, stored_form(email))
        current, verdict = _decide(oauth, app, found, scope, ip)
        quota = current.exchange.daily_quota
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


def _decide(
    oauth: OAuth, app: App, found: Subject | None, scope: str | None, ip: str | None
) -> tuple[App, Granted | Refused]:
    """Decide about an exchange with the app's current settings, and return the app with these settings too. `found` is
    None if the app was deleted or its secret replaced.
    """
    if found is None:
        gone = InvalidClient(basic=True)
        return app, Refused(gone, gone.message)
    return found.app, decide(oauth, Facts(found, ip, scope))


def stored_form(email: str) -> str:
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
    text, token = _new_token(app, given, now)
    await token_store.add_token(tx, token)
    await _record_audit(tx, app, _grant_entry(app, given, token), visitor, now)
    return _result(app, given, text, token)


def _new_token(app: App, given: Granted, now: int) -> tuple[str, AppToken]:
    """The text and the row of a token."""
    details = TokenDetails(
        client_id=app.client_id,
        user_id=given.member.user.id,
        consent_id=None,
        org_id=app.org_id,
        scopes=" ".join(given.scopes),
        family=secrets.token_hex(12),
        supersedes=None,
        lifetime=app.exchange.duration,
        claims=places_for(app, ""),
    )
    return issuance.new_access_token(details, now, since=given.member.since)


def _result(app: App, given: Granted, text: str, token: AppToken) -> ExchangeResult:
    return ExchangeResult(given.member.user, text, token.scopes, app.exchange.duration)


def _grant_entry(app: App, given: Granted, token: AppToken) -> AuditText:
    user = given.member.user
    data = {
        "result": "granted",
        "user": user.name,
        "userId": user.id,
        "scope": token.scopes,
        "tokenId": token.family,
        "expiresIn": app.exchange.duration,
    }
    return f"got a token for {user.name}", data


def _refusal_entry(email: str, refused: Refused) -> AuditText:
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


async def _record_audit(tx: Tx, app: App, entry: AuditText, visitor: Visitor, now: int) -> None:
    if app.org_id is not None:
        await audit_store.add(tx, _audit_entry(app, app.org_id, entry, visitor, now))


def _audit_entry(app: App, org_id: str, entry: AuditText, visitor: Visitor, now: int) -> Entry:
    actor = Actor(
        name=app.name,
        ip=visitor.ip,
        user_agent=visitor.user_agent,
        oauth={"clientId": app.client_id, "name": app.name},
    )
    message, data = entry
    return new_entry(org_id, EntryType.OAUTH_TOKEN, message, actor, now, data)
