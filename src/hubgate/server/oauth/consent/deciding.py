"""What a user ticked becomes a consent, and the consent a code."""

import secrets
from collections.abc import Collection
from dataclasses import dataclass

from hubgate.server.accounts.model import Person
from hubgate.server.accounts.tokens.text import TokenKind, new_token
from hubgate.server.ids import new_id
from hubgate.server.oauth.authorize.request import AuthorizationRequest
from hubgate.server.oauth.consent import store
from hubgate.server.oauth.consent.model import Consent
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.tokens import store as token_store
from hubgate.server.oauth.tokens.model import CODE_LASTS, Code
from hubgate.server.scopes import join_scopes
from hubgate.server.storage.database import Tx

# Who signs in cannot be left out of a sign-in.
FIXED = frozenset({"openid", "profile", "email"})


@dataclass(frozen=True)
class Ticked:
    scopes: Collection[str]
    organizations: Collection[str]


def fixed_scopes(request: AuthorizationRequest) -> frozenset[str]:
    """What is asked and cannot be unticked."""
    return frozenset(request.scopes) & (FIXED | set(request.app.required_scopes))


def approved_scopes(request: AuthorizationRequest, ticked: Ticked) -> frozenset[str]:
    """Only what was asked, whatever a tampered form says (attack O37)."""
    return (frozenset(ticked.scopes) & frozenset(request.scopes)) | fixed_scopes(request)


async def approve(
    oauth: OAuth, request: AuthorizationRequest, person: Person, before: Consent | None, ticked: Ticked, auth_time: int
) -> str:
    """The code. The consent becomes the union of what was allowed before and now, less what was shown and unticked."""
    now, approved = oauth.clock(), approved_scopes(request, ticked)
    kept = before.scopes - set(request.scopes) if before else frozenset()
    consent = Consent(
        id=new_id(now),
        user_id=person.user.id,
        client_id=request.app.client_id,
        scopes=approved | kept,
        organizations=frozenset(ticked.organizations) & person.roles.keys(),
        face=request.app.face,
        app_name=request.app.name,
        created_at=now,
        updated_at=now,
        last_used_at=None,
    )

    async def unit(tx: Tx) -> str:
        consent_id = await store.save(tx, consent)
        return await _add_code(tx, request, person.user.id, consent_id, approved, auth_time, now)

    return await oauth.db.write(unit)


async def give_code(oauth: OAuth, request: AuthorizationRequest, consent: Consent, auth_time: int) -> str:
    """For a request whose every wish was allowed before."""
    now = oauth.clock()

    async def unit(tx: Tx) -> str:
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
        scopes=join_scopes(scopes),
        challenge=request.challenge,
        nonce=request.nonce,
        auth_time=auth_time,
        expires_at=now + CODE_LASTS,
        redeemed_at=None,
        family=secrets.token_hex(12),
    )
    await token_store.add_code(tx, code)
    return text
