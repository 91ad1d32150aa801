"""The exchange itself: the token and the entry of the audit log, in one unit."""

import secrets
from dataclasses import dataclass
from typing import Any

from hubgate.server.accounts.emails import LONGEST, check_email
from hubgate.server.accounts.model import User, Visitor
from hubgate.server.audit.model import Actor, Kind
from hubgate.server.audit.record import record
from hubgate.server.errors import HubError, TooManyRequests, Unprocessable
from hubgate.server.logs import redacted
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import ClientRefused, invalid_request
from hubgate.server.oauth.exchange import store
from hubgate.server.oauth.exchange.judging import judge
from hubgate.server.oauth.exchange.model import Facts, Given, Refused
from hubgate.server.oauth.tokens import issuing
from hubgate.server.oauth.tokens.issuing import Wanted
from hubgate.server.scopes import join_scopes
from hubgate.server.storage.database import ConstraintViolated, Tx
from hubgate.server.throttle.limiter import Limit

DAY_SECONDS = 24 * 60 * 60


@dataclass(frozen=True)
class Exchanged:
    user: User
    access_token: str
    scopes: str
    lifetime: int


async def exchange(oauth: OAuth, app: App, email: str, scope: str | None, visitor: Visitor) -> Exchanged:
    """Raises what the app is told. Whatever becomes of it, an organization's app leaves its entry."""
    now = oauth.clock()

    async def unit(tx: Tx) -> Exchanged | HubError:
        verdict = await verdict_in(tx, oauth, app.client_id, email, scope, visitor.ip)
        quota = app.exchange.daily_quota
        if isinstance(verdict, Given) and quota is not None:
            limit = quota_of(quota)
            if not await oauth.limiter.take_in(tx, limit, app.client_id):
                verdict = used_up(limit, await oauth.limiter.seconds_left(tx, limit, app.client_id))
        if isinstance(verdict, Refused):
            await _tell(tx, app, _refusal(email, verdict), visitor, now)
            return verdict.error
        return await _issued(tx, app, verdict, visitor, now)

    try:
        outcome = await oauth.db.write(unit)
    except ConstraintViolated:
        # The member or the organization went while it was judged. Now it is judged without them.
        outcome = await oauth.db.write(unit)
    if isinstance(outcome, HubError):
        raise outcome
    return outcome


async def note_refusal(oauth: OAuth, app: App, subject: str, error: HubError, visitor: Visitor) -> None:
    """Of a request that was too malformed to be judged, by an app that has proven itself."""
    now, entry = oauth.clock(), _refusal(subject, Refused(error, error.message))
    await oauth.db.write(lambda tx: _tell(tx, app, entry, visitor, now))


def check_subject(email: str) -> str:
    """An e-mail address, at least by its looks (attack O46)."""
    if "@" not in email:
        raise invalid_request("subject_token is the e-mail address of a member.", "subject_token")
    return email


async def verdict_in(
    tx: Tx, oauth: OAuth, client_id: str, email: str, scope: str | None, ip: str | None
) -> Given | Refused:
    """Looks for the member whatever else is wrong, so that no answer comes sooner than another."""
    found = await store.app_plan_and_member(tx, client_id, _stored_form(email))
    if found is None:
        gone = ClientRefused(basic=True)
        return Refused(gone, gone.message)
    app, plan, member = found
    return judge(oauth, Facts(app, plan, member, ip, scope))


def _stored_form(email: str) -> str:
    """As an account would have it; an address that no account can have finds nobody (attack O45)."""
    try:
        return check_email(email)
    except Unprocessable:
        return ""


def quota_of(most: int) -> Limit:
    return Limit("token exchange", most, DAY_SECONDS)


def used_up(quota: Limit, seconds_left: int) -> Refused:
    text = f"The daily quota of {quota.most:,} exchanges is used up."
    return Refused(TooManyRequests(text, retry_after=seconds_left, code="temporarily_unavailable"), text)


async def _issued(tx: Tx, app: App, given: Given, visitor: Visitor, now: int) -> Exchanged:
    user, scopes = given.member.user, join_scopes(given.scopes)
    wanted = Wanted(
        client_id=app.client_id,
        user_id=user.id,
        consent_id=None,
        org_id=app.org_id,
        scopes=scopes,
        family=secrets.token_hex(12),
        supersedes=None,
        lifetime=app.exchange.duration,
    )
    access_token = await issuing.add_access_token(tx, wanted, now, since=given.member.since)
    said = {
        "result": "granted",
        "user": user.name,
        "userId": user.id,
        "scope": scopes,
        "tokenId": wanted.family,
        "expiresIn": wanted.lifetime,
    }
    await _tell(tx, app, (f"took a token for {user.name}", said), visitor, now)
    return Exchanged(user, access_token, scopes, wanted.lifetime)


def _refusal(email: str, refused: Refused) -> tuple[str, dict[str, Any]]:
    error = refused.error.code or "invalid_request"
    said = {"result": "refused", "error": error, "reason": refused.why}
    subject = _shown_subject(email)
    if not subject:
        return f"was refused a token: {refused.why}", said
    return f"was refused a token for {subject}: {refused.why}", {**said, "subject": subject}


def _shown_subject(email: str) -> str:
    """What is no address may be a token that was sent by mistake, and admins are not to read it."""
    if "@" not in email:
        return ""
    return redacted("".join(character if character.isprintable() else "?" for character in email[:LONGEST]))


async def _tell(tx: Tx, app: App, entry: tuple[str, dict[str, Any]], visitor: Visitor, now: int) -> None:
    if app.org_id is None:
        return
    actor = Actor(
        name=app.name,
        ip=visitor.ip,
        user_agent=visitor.user_agent,
        oauth={"clientId": app.client_id, "name": app.name},
    )
    message, data = entry
    await record(tx, app.org_id, Kind.OAUTH_TOKEN, message, actor, now, data)
