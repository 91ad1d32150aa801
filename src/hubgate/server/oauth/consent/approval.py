"""Stores the user's decision on a consent page, and issues codes.

An approval also remembers what the page showed: the servers, and a native app's redirect URI. A later request skips the
page only if the user has approved the same details before. Tokens are limited by the consent itself.
"""

import secrets
from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.accounts.account_locks import lock_credentials
from hubgate.server.accounts.model import Person
from hubgate.server.accounts.tokens.text import TokenKind, new_token
from hubgate.server.ids import new_id
from hubgate.server.oauth.apps import store as app_store
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.authorize.request import AuthorizationRequest
from hubgate.server.oauth.cimd import store as document_store
from hubgate.server.oauth.consent import store
from hubgate.server.oauth.consent.model import AccessRequest, Consent, ResourceScopes, consent_details
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.tokens import store as token_store
from hubgate.server.oauth.tokens.model import CODE_LIFETIME, Code
from hubgate.server.scopes import IDENTITY_SCOPES, SCOPE_NAMES, join_scopes, parse_scopes
from hubgate.server.storage.database import ConstraintViolated, Database, Row, Tx

# Per consent. When the oldest approvals are deleted, users see the consent page again for them. A CLI that uses a new
# port each time adds an approval each time.
MAX_APPROVALS = 50


class Selection(Struct, frozen=True):
    """The user's selection on the consent page."""

    scopes: Collection[str]
    organizations: Collection[str]


def fixed_scopes(requested: Collection[str], app: App | None) -> frozenset[str]:
    """The requested scopes that cannot be unticked."""
    return frozenset(requested) & (IDENTITY_SCOPES | set(app.required_scopes if app else ()))


def approved_scopes(access: AccessRequest, ticked: Selection) -> frozenset[str]:
    """The ticked scopes, limited to those requested in case the form was tampered with (attack O37)."""
    return (frozenset(ticked.scopes) & frozenset(access.scopes)) | fixed_scopes(access.scopes, access.app)


def granted_organizations(person: Person, ticked: Selection) -> frozenset[str]:
    """The ticked organizations, limited to the user's own in case the form was tampered with."""
    return frozenset(ticked.organizations) & person.roles.keys()


async def store_approval(
    tx: Tx, access: AccessRequest, person: Person, ticked: Selection, now: int
) -> tuple[str, tuple[str, ...]]:
    """Store an approval; returns the consent's id and the scopes approved now, in the order requested.

    The consent becomes the union of earlier and new scopes, without those shown and unticked; the same applies to
    each ticked organization. Concurrent approvals do not undo each other's scopes. Raises ConstraintViolated if the
    app or user was deleted.
    """
    await lock_credentials(tx, person.user.id, person.user.credentials_version)
    app, approved, requested = access.app, approved_scopes(access, ticked), set(access.scopes)
    if not access.resources and not approved <= SCOPE_NAMES:
        # The operator may have revoked a scope since the app was read. Apps are locked before consents, as always.
        approved &= SCOPE_NAMES.union(await _lock_extra_scopes(tx, app))
    app_id = app.client_id if app.is_registered else None
    before = await store.lock(tx, person.user.id, app.client_id, app_id, new_id(now), now)
    if access.resources:
        # Access to other servers changes nothing on this hub (attack O64) and nothing on servers that the page did not
        # show (attack O80).
        granted_there = {
            name: (approved & access.scopes_on(name)) | (before.allowed_on(name) - requested)
            for name in access.resources
        }
        after = replace(before, resource_scopes={**before.resource_scopes, **granted_there})
        await store.update_consent(tx, after, app.face, app.name, now)
    else:
        await store.update_consent(
            tx, replace(before, scopes=approved | (before.scopes - requested)), app.face, app.name, now
        )
        granted = await store.organizations(tx, before.id)
        # A new organization gets only scopes that the page showed, so older tokens gain no others there (attack O65).
        ticked_now = {
            org_id: (approved | (granted.get(org_id, frozenset()) - requested)) - IDENTITY_SCOPES
            for org_id in granted_organizations(person, ticked)
        }
        await store.set_organizations(tx, before.id, ticked_now)
    await _save_approval(tx, before.id, access, approved, now)
    return before.id, tuple(name for name in access.scopes if name in approved)


async def _lock_extra_scopes(tx: Tx, app: App) -> tuple[str, ...]:
    if app.document_host:
        return await document_store.lock_granted_scopes(tx, app.client_id)
    return await app_store.lock_extra_scopes(tx, app.client_id)


async def approve(
    oauth: OAuth, request: AuthorizationRequest, person: Person, ticked: Selection, auth_time: int
) -> str | None:
    """Store the approval and return a code; None if the app or the user was deleted concurrently."""
    now = oauth.clock()

    async def unit(tx: Tx) -> str:
        consent_id, approved = await store_approval(tx, request.access, person, ticked, now)
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
        await lock_credentials(tx, consent.user_id, credentials_version)
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
        redirect_uri=request.return_address.redirect_uri,
        redirect_uri_sent=int(request.redirect_uri_sent),
        scopes=" ".join(scopes),
        challenge=request.challenge,
        nonce=request.nonce,
        auth_time=auth_time,
        expires_at=now + CODE_LIFETIME,
        redeemed_at=None,
        family=secrets.token_hex(12),
        resources=" ".join(request.resources),
        claims=request.claims,
    )
    await token_store.add_code(tx, code)
    return text


async def find_approved_scopes(db: Database, consent_id: str, access: AccessRequest) -> frozenset[str] | None:
    """The scopes approved on a consent page with the same details; None if there was no such page."""
    shown = consent_details(access)
    row = await store.find_approval(db, consent_id, shown) if shown else None
    return frozenset(parse_scopes(row["scopes"])) if row else None


async def _save_approval(tx: Tx, consent_id: str, access: AccessRequest, approved: frozenset[str], now: int) -> None:
    """Save which scopes were approved on a page with these details.

    Scopes that were shown but not ticked are removed from the other approvals for the same servers too.
    """
    shown, unticked = consent_details(access), set(access.scopes) - approved
    rows = {row["shown"]: row for row in await store.approvals_of(tx, consent_id)}
    remaining = {key: _remaining(row, unticked, access.resources) for key, row in rows.items()}
    await store.set_approval_scopes(tx, consent_id, {key: join_scopes(scopes) for key, scopes in remaining.items()})
    if shown is not None:
        await store.save_approval(tx, consent_id, shown, join_scopes(approved | remaining.get(shown.key, set())), now)
        if len(rows) >= MAX_APPROVALS:
            await store.drop_oldest_approvals(tx, consent_id, MAX_APPROVALS)


def _remaining(row: Row, unticked: Collection[str], resources: Collection[str]) -> set[str]:
    """The scopes of an approval without those unticked on a page for `resources`, if both have a server in common."""
    scopes, named = set(parse_scopes(row["scopes"])), set(row["resources"].split())
    is_same = not named.isdisjoint(resources) if resources else not named
    return scopes.difference(unticked) if is_same else scopes


async def update_approvals(tx: Tx, consent_id: str, scopes: Collection[str], revoked: ResourceScopes) -> None:
    """Update approvals after a change under Connected apps.

    Approvals for this hub get `scopes`; approvals for other servers lose the scopes that were revoked on one of them.
    """
    chosen = {}
    for row in await store.approvals_of(tx, consent_id):
        names = row["resources"].split()
        lost = frozenset().union(*(revoked.get(name, frozenset()) for name in names))
        chosen[row["shown"]] = join_scopes(_remaining(row, lost, names) if names else scopes)
    await store.set_approval_scopes(tx, consent_id, chosen)
