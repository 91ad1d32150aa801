"""Stores the user's decision on a consent page, and issues codes."""

import secrets
from collections.abc import Collection
from dataclasses import dataclass, replace

from hubgate.server.accounts.account_locks import lock_signed_in
from hubgate.server.accounts.model import Person
from hubgate.server.accounts.tokens.text import TokenKind, new_token
from hubgate.server.ids import new_id
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.authorize.request import AuthorizationRequest
from hubgate.server.oauth.consent import store
from hubgate.server.oauth.consent.approvals import remember
from hubgate.server.oauth.consent.model import IDENTITY, AccessRequest, Consent
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.tokens import store as token_store
from hubgate.server.oauth.tokens.model import CODE_LASTS, Code
from hubgate.server.storage.database import ConstraintViolated, Tx


@dataclass(frozen=True)
class Selection:
    """The user's selection on the consent page."""

    scopes: Collection[str]
    organizations: Collection[str]


def fixed_scopes(asked: Collection[str], app: App | None) -> frozenset[str]:
    """The requested scopes that cannot be unticked."""
    return frozenset(asked) & (IDENTITY | set(app.required_scopes if app else ()))


def approved_scopes(wish: AccessRequest, ticked: Selection) -> frozenset[str]:
    """The ticked scopes, limited to those requested in case the form was tampered with (attack O37)."""
    return (frozenset(ticked.scopes) & frozenset(wish.scopes)) | fixed_scopes(wish.scopes, wish.app)


def granted_organizations(person: Person, ticked: Selection) -> frozenset[str]:
    """The ticked organizations, limited to the user's own in case the form was tampered with."""
    return frozenset(ticked.organizations) & person.roles.keys()


async def allow(
    tx: Tx, wish: AccessRequest, person: Person, ticked: Selection, now: int
) -> tuple[str, tuple[str, ...]]:
    """Store an approval; returns the consent's id and the scopes approved now, in the order requested.

    The consent becomes the union of earlier and new scopes, without those shown and unticked; so does each ticked
    organization. Concurrent approvals do not undo each other. ConstraintViolated if the app or user was deleted.
    """
    await lock_signed_in(tx, person.user.id, person.user.credentials_version)
    app, approved, requested = wish.app, approved_scopes(wish, ticked), set(wish.scopes)
    app_id = app.client_id if app.is_registered else None
    before = await store.lock(tx, person.user.id, app.client_id, app_id, new_id(now), now)
    if wish.resources:
        # Access to other servers changes nothing on this hub (attack O64).
        scopes, resources = approved | (before.other_scopes - requested), before.other_resources.union(wish.resources)
        after = replace(before, other_scopes=scopes, other_resources=resources)
        await store.allow(tx, after, app.face, app.name, now)
    else:
        await store.allow(tx, replace(before, scopes=approved | (before.scopes - requested)), app.face, app.name, now)
        granted = await store.organizations(tx, before.id)
        # A new organization gets only scopes that the page showed: older, wider tokens gain nothing in it (attack O65).
        ticked_now = {
            org_id: (approved | (granted.get(org_id, frozenset()) - requested)) - IDENTITY
            for org_id in granted_organizations(person, ticked)
        }
        await store.set_organizations(tx, before.id, ticked_now)
    await remember(tx, before.id, wish, approved, now)
    return before.id, tuple(name for name in wish.scopes if name in approved)


async def approve(
    oauth: OAuth, request: AuthorizationRequest, person: Person, ticked: Selection, auth_time: int
) -> str | None:
    """Store the approval and return a code; None if the app or the user was deleted concurrently."""
    now = oauth.clock()

    async def unit(tx: Tx) -> str:
        consent_id, approved = await allow(tx, request.wish, person, ticked, now)
        return await _add_code(tx, request, person.user.id, consent_id, approved, auth_time, now)

    try:
        return await oauth.db.write(unit)
    except ConstraintViolated:
        return None


async def issue_code(
    oauth: OAuth, request: AuthorizationRequest, consent: Consent, auth_time: int, credentials_version: int | None
) -> str | None:
    """Return a code for a request that is fully approved already; None if the consent was revoked concurrently."""
    now = oauth.clock()

    async def unit(tx: Tx) -> str | None:
        await lock_signed_in(tx, consent.user_id, credentials_version)
        if not await store.record_use(tx, consent.id, now):
            return None
        return await _add_code(tx, request, consent.user_id, consent.id, request.scopes, auth_time, now)

    return await oauth.db.write(unit)


async def _add_code(
    tx: Tx,
    request: AuthorizationRequest,
    user_id: str,
    consent_id: str,
    scopes: tuple[str, ...],
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
        scopes=" ".join(scopes),
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
