"""Creates, renames, refreshes and revokes personal tokens."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.account_locks import lock_account_and_credentials, lock_credentials
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.field_checks import check_field
from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import TokenRole
from hubgate.server.accounts.single_use_forms import VerifiedNonce, consume_nonce
from hubgate.server.accounts.tokens import limits_store, store
from hubgate.server.accounts.tokens.limits import NO_LIMITS, NewLimits, check_limits
from hubgate.server.accounts.tokens.model import (
    MAX_PLACES_PER_USER,
    MAX_TOKENS_PER_USER,
    USE_RECORDED_EVERY,
    PersonalToken,
    check_token_name,
)
from hubgate.server.accounts.tokens.text import TokenKind, last_four, new_token, read_token
from hubgate.server.clock import iso
from hubgate.server.errors import FieldErrors, NotFound
from hubgate.server.ids import AFTER_ALL, new_id
from hubgate.server.mail import texts
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.scopes import join_scopes
from hubgate.server.storage.database import Tx

CURSOR = (str,)
TOKENS_PAGE = "/settings/tokens"
_NOT_FOUND = "Token not found."
_TOO_MANY_PLACES = (
    f"All your tokens together may have at most {MAX_PLACES_PER_USER:,} organizations and repos. Revoke one first, or"
    " choose fewer."
)


async def create(
    accounts: Accounts,
    user: User,
    name: str,
    role: TokenRole,
    ip: str,
    nonce: VerifiedNonce | None = None,
    *,
    expires_at: int | None = None,
    limits: NewLimits = NO_LIMITS,
) -> tuple[str, PersonalToken]:
    """Create a token; returns its text, which is not stored, and its metadata. The user is notified by mail.

    With `nonce`, submitting the same form again raises AlreadyUsed. `limits` are those of a fine-grained token.
    """
    now, name = accounts.clock(), check_field("name", check_token_name, name)
    if role is TokenRole.FINE_GRAINED:
        limits = check_limits(limits)
    text, key = new_token(TokenKind.PERSONAL, now)
    token = PersonalToken(
        id=new_id(now),
        user_id=user.id,
        name=name,
        role=role,
        last_four=last_four(text),
        created_at=now,
        expires_at=expires_at,
        scopes=join_scopes(limits.everywhere),
    )

    async def unit(tx: Tx) -> PersonalToken:
        if nonce is not None:
            await consume_nonce(tx, nonce)
        # The lock serializes concurrent requests, so that the limit holds.
        await lock_account_and_credentials(tx, user.id, user.credentials_version)
        if await store.count(tx, user.id) >= MAX_TOKENS_PER_USER:
            raise FieldErrors({"name": f"A user may have at most {MAX_TOKENS_PER_USER} tokens. Revoke one first."})
        if limits.places and await limits_store.count(tx, user.id) + len(limits.places) > MAX_PLACES_PER_USER:
            raise FieldErrors({"scopes": _TOO_MANY_PLACES})
        await store.add(tx, key, token)
        for place in limits.places:
            await limits_store.add(tx, token.id, user.id, place)
        await _notify_user(accounts, tx, user, token, ip)
        return await _require(tx, user.id, token.id)

    created = await accounts.db.write(unit)
    accounts.outbox.send_soon()
    return text, created


async def of_user(accounts: Accounts, user_id: str) -> Sequence[PersonalToken]:
    """All tokens of a user, newest first."""
    return await _list(accounts, user_id, AFTER_ALL, MAX_TOKENS_PER_USER)


async def page_of_user(accounts: Accounts, user_id: str, page: PageRequest) -> Page[PersonalToken]:
    """A page of a user's tokens, newest first."""
    before = page.last_shown(AFTER_ALL)
    return page_of(await _list(accounts, user_id, before, page.fetch_limit), page, lambda token: (token.id,))


async def _list(accounts: Accounts, user_id: str, before: str, limit: int) -> Sequence[PersonalToken]:
    async def unit(tx: Tx) -> Sequence[PersonalToken]:
        found = await store.of_user(tx, user_id, before, limit)
        if not any(token.is_fine_grained for token in found):
            return found
        limits = await limits_store.of_tokens(tx, user_id, before, limit)
        return [replace(token, limits=limits.get(token.id, ())) for token in found]

    return await accounts.db.read_long(unit)


async def get(accounts: Accounts, user_id: str, token_id: str) -> PersonalToken:
    return await accounts.db.read(lambda tx: _require(tx, user_id, token_id))


async def rename(accounts: Accounts, user_id: str, token_id: str, name: str) -> PersonalToken:
    name = check_field("name", check_token_name, name)

    async def unit(tx: Tx) -> PersonalToken:
        await store.rename(tx, user_id, token_id, name)
        return await _require(tx, user_id, token_id)

    return await accounts.db.write(unit)


async def refresh(
    accounts: Accounts, user: User, token_id: str, ip: str, nonce: VerifiedNonce | None = None
) -> tuple[str, PersonalToken]:
    """Replace the text of a token. The old text stops working at once. A token that expires gets the lifetime again
    that it was created with, also if it has expired.
    """
    now = accounts.clock()
    text, key = new_token(TokenKind.PERSONAL, now)

    async def unit(tx: Tx) -> PersonalToken:
        if nonce is not None:
            await consume_nonce(tx, nonce)
        await lock_credentials(tx, user.id, user.credentials_version)
        before = await _require(tx, user.id, token_id)
        expires_at = before.expiry_after_refresh(now)
        token = replace(
            before,
            last_four=last_four(text),
            created_at=now,
            expires_at=expires_at,
            last_used_at=None,
            last_used_ip=None,
        )
        await store.replace_key(tx, key, token)
        await _notify_user(accounts, tx, user, token, ip)
        return token

    token = await accounts.db.write(unit)
    accounts.outbox.send_soon()
    return text, token


async def revoke(accounts: Accounts, user_id: str, token_id: str) -> None:
    if not await accounts.db.write(lambda tx: store.remove(tx, user_id, token_id)):
        raise NotFound(_NOT_FOUND)


async def revoke_leaked(accounts: Accounts, leaked: Iterable[str]) -> None:
    """Revoke leaked tokens. Anyone may report them; other texts are ignored, and the response does not reveal which
    tokens were valid."""
    keys = [found[1] for text in leaked if (found := read_token(text)) and found[0] is TokenKind.PERSONAL]
    # Anyone may send well-formed fake tokens, which must not occupy the database writer.
    known = await accounts.db.read_long(lambda tx: store.existing_keys(tx, keys)) if keys else []

    async def unit(tx: Tx) -> None:
        for key in known:
            if removed := await store.remove_by_key(tx, key):
                name, user_id = removed
                user = await account_store.user(tx, user_id)
                if user is not None and user.email_verified_at is not None:
                    await accounts.outbox.add(tx, texts.token_revoked(user.email, name, accounts.link(TOKENS_PAGE)))

    if known:
        await accounts.db.write_long(unit)
        accounts.outbox.send_soon()


def should_record_use(token: PersonalToken, now: int) -> bool:
    return token.last_used_at is None or now - token.last_used_at >= USE_RECORDED_EVERY


async def _require(tx: Tx, user_id: str, token_id: str) -> PersonalToken:
    token = await store.by_id(tx, user_id, token_id)
    if token is None:
        raise NotFound(_NOT_FOUND)
    if not token.is_fine_grained:
        return token
    return replace(token, limits=await limits_store.of_token(tx, user_id, token_id))


async def _notify_user(accounts: Accounts, tx: Tx, user: User, token: PersonalToken, ip: str) -> None:
    """Notify the user by mail, at a verified address only: the subject contains the token's name, which a stranger must
    not see."""
    if user.email_verified_at is not None:
        when, link = iso(token.created_at), accounts.link(TOKENS_PAGE)
        await accounts.outbox.add(tx, texts.new_token(user.email, token.name, when, ip, link))
