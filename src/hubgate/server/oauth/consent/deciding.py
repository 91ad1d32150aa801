"""What a user ticked becomes a consent, and the consent a code."""

import secrets
from collections.abc import Collection
from dataclasses import dataclass

from hubgate.server.accounts.holding import hold_signed_in
from hubgate.server.accounts.model import Person
from hubgate.server.accounts.tokens.text import TokenKind, new_token
from hubgate.server.ids import new_id
from hubgate.server.oauth.approvals.remembering import remember
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.authorize.request import AuthorizationRequest
from hubgate.server.oauth.consent import store
from hubgate.server.oauth.consent.model import IDENTITY, Consent
from hubgate.server.oauth.consent.wish import Wish
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.tokens import store as token_store
from hubgate.server.oauth.tokens.model import CODE_LASTS, Code
from hubgate.server.scopes import join_scopes
from hubgate.server.storage.database import ConstraintViolated, Tx


@dataclass(frozen=True)
class Ticked:
    scopes: Collection[str]
    organizations: Collection[str]


def fixed_scopes(asked: Collection[str], app: App | None) -> frozenset[str]:
    """What is asked and cannot be unticked."""
    return frozenset(asked) & (IDENTITY | set(app.required_scopes if app else ()))


def approved_scopes(wish: Wish, ticked: Ticked) -> frozenset[str]:
    """Only what was asked, whatever a tampered form says (attack O37)."""
    return (frozenset(ticked.scopes) & frozenset(wish.scopes)) | fixed_scopes(wish.scopes, wish.app)


def granted_organizations(person: Person, ticked: Ticked) -> frozenset[str]:
    """Only the user's own, whatever a tampered form says."""
    return frozenset(ticked.organizations) & person.roles.keys()


async def allow(tx: Tx, wish: Wish, person: Person, ticked: Ticked, now: int) -> tuple[str, frozenset[str]]:
    """The consent's id and what was approved now; ConstraintViolated if the app or the user was deleted meanwhile.

    The consent becomes the union of what was allowed before and now, less what was shown and unticked; so does each
    ticked organization. Of two approvals at once neither undoes the other.
    """
    await hold_signed_in(tx, person.user.id, person.user.credentials_version)
    app, approved, asked = wish.app, approved_scopes(wish, ticked), set(wish.scopes)
    app_id = app.client_id if app.is_registered else None
    consent_id, before, elsewhere = await store.hold(tx, person.user.id, app.client_id, app_id, new_id(now), now)
    if wish.resources:
        # Access to other servers changes nothing on this hub (attack O64).
        left = approved | (elsewhere - asked)
        await store.allow(tx, consent_id, left, app.face, app.name, now, elsewhere=True)
    else:
        await store.allow(tx, consent_id, approved | (before - asked), app.face, app.name, now)
        granted = await store.organizations(tx, consent_id)
        # An organization gets what the page showed: wider tokens of before gain nothing in it (attack O65).
        ticked_now = {
            org_id: (approved | (granted.get(org_id, frozenset()) - asked)) - IDENTITY
            for org_id in granted_organizations(person, ticked)
        }
        await store.set_organizations(tx, consent_id, ticked_now)
    await remember(tx, consent_id, wish, approved, now)
    return consent_id, approved


async def approve(
    oauth: OAuth, request: AuthorizationRequest, person: Person, ticked: Ticked, auth_time: int
) -> str | None:
    """The code; None if the app or the user was deleted meanwhile."""
    now = oauth.clock()

    async def unit(tx: Tx) -> str:
        consent_id, approved = await allow(tx, request.wish, person, ticked, now)
        return await _add_code(tx, request, person.user.id, consent_id, approved, auth_time, now)

    try:
        return await oauth.db.write(unit)
    except ConstraintViolated:
        return None


async def give_code(
    oauth: OAuth, request: AuthorizationRequest, consent: Consent, auth_time: int, credentials_version: int | None
) -> str | None:
    """For a request whose every wish was allowed before; None if that was taken back meanwhile."""
    now = oauth.clock()

    async def unit(tx: Tx) -> str | None:
        await hold_signed_in(tx, consent.user_id, credentials_version)
        if not await store.note_use(tx, consent.id, now):
            return None
        return await _add_code(tx, request, consent.user_id, consent.id, request.scopes, auth_time, now)

    return await oauth.db.write(unit)


async def _add_code(
    tx: Tx,
    request: AuthorizationRequest,
    user_id: str,
    consent_id: str,
    scopes: Collection[str],
    auth_time: int,
    now: int,
) -> str:
    text, key = new_token(TokenKind.CODE, now)
    code = Code(
        key=key,
        client_id=request.app.client_id,
        consent_id=consent_id,
        user_id=user_id,
        redirect_uri=request.to.redirect_uri,
        redirect_uri_sent=int(request.redirect_uri_sent),
        scopes=join_scopes(scopes),
        challenge=request.challenge,
        nonce=request.nonce,
        auth_time=auth_time,
        expires_at=now + CODE_LASTS,
        redeemed_at=None,
        family=secrets.token_hex(12),
        resources=" ".join(request.resources),
    )
    await token_store.add_code(tx, code)
    return text
