"""Creates, renames, refreshes and revokes personal tokens."""

from collections.abc import Iterable, Sequence

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.account_locks import lock_account_and_credentials, lock_credentials
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.field_checks import check_field
from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import TokenRole
from hubgate.server.accounts.single_use_forms import VerifiedNonce, consume_nonce
from hubgate.server.accounts.tokens import store
from hubgate.server.accounts.tokens.model import (
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
from hubgate.server.storage.database import Database, Tx

CURSOR = (str,)
_NOT_FOUND = "Token not found."
_TOKENS_PAGE = "/settings/tokens"


async def create(
    accounts: Accounts, user: User, name: str, role: TokenRole, ip: str, nonce: VerifiedNonce | None = None
) -> tuple[str, PersonalToken]:
    """Create a token; returns its text, which is not stored, and its metadata. The user is notified by mail.

    With `nonce`, submitting the same form again raises AlreadyUsed.
    """
    now, name = accounts.clock(), check_field("name", check_token_name, name)
    text, key = new_token(TokenKind.PERSONAL, now)
    token = PersonalToken(new_id(now), user.id, name, role, last_four(text), now, None)

    async def unit(tx: Tx) -> None:
        if nonce is not None:
            await consume_nonce(tx, nonce)
        # The lock serializes concurrent requests, so that the limit holds.
        await lock_account_and_credentials(tx, user.id, user.credentials_version)
        if await store.count(tx, user.id) >= MAX_TOKENS_PER_USER:
            raise FieldErrors({"name": f"A user may have at most {MAX_TOKENS_PER_USER} tokens. Revoke one first."})
        await store.add(tx, key, token)
        await _notify_user(accounts, tx, user, token, ip)

    await accounts.db.write(unit)
    accounts.outbox.send_soon()
    return text, token


async def of_user(accounts: Accounts, user_id: str) -> Sequence[PersonalToken]:
    """All tokens of a user, newest first."""
    return await _list(accounts, user_id, AFTER_ALL, MAX_TOKENS_PER_USER)


async def page_of_user(accounts: Accounts, user_id: str, page: PageRequest) -> Page[PersonalToken]:
    """A page of a user's tokens, newest first."""
    before = page.last_shown(AFTER_ALL)
    return page_of(await _list(accounts, user_id, before, page.fetch_limit), page, lambda token: (token.id,))


async def _list(accounts: Accounts, user_id: str, before: str, limit: int) -> Sequence[PersonalToken]:
    return await accounts.db.read_long(lambda tx: store.of_user(tx, user_id, before, limit))


async def get(accounts: Accounts, user_id: str, token_id: str) -> PersonalToken:
    return await _require(accounts.db, user_id, token_id)


async def rename(accounts: Accounts, user_id: str, token_id: str, name: str) -> PersonalToken:
    name = check_field("name", check_token_name, name)

    async def unit(tx: Tx) -> PersonalToken:
        await store.rename(tx, user_id, token_id, name)
        return await _require(tx, user_id, token_id)

    return await accounts.db.write(unit)


async def refresh(
    accounts: Accounts, user: User, token_id: str, ip: str, nonce: VerifiedNonce | None = None
) -> tuple[str, PersonalToken]:
    """Replace the text of a token. The old text stops working at once."""
    now = accounts.clock()
    text, key = new_token(TokenKind.PERSONAL, now)

    async def unit(tx: Tx) -> PersonalToken:
        if nonce is not None:
            await consume_nonce(tx, nonce)
        await lock_credentials(tx, user.id, user.credentials_version)
        await store.replace_key(tx, user.id, token_id, key, last_four(text), now)
        token = await _require(tx, user.id, token_id)
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
                    await accounts.outbox.add(tx, texts.token_revoked(user.email, name, accounts.link(_TOKENS_PAGE)))

    if known:
        await accounts.db.write_long(unit)
        accounts.outbox.send_soon()


def should_record_use(token: PersonalToken, now: int) -> bool:
    return token.last_used_at is None or now - token.last_used_at >= USE_RECORDED_EVERY


async def _require(tx: Tx | Database, user_id: str, token_id: str) -> PersonalToken:
    token = await store.by_id(tx, user_id, token_id)
    if token is None:
        raise NotFound(_NOT_FOUND)
    return token


async def _notify_user(accounts: Accounts, tx: Tx, user: User, token: PersonalToken, ip: str) -> None:
    """Notify the user by mail, at a verified address only: the subject contains the token's name, which a stranger must
    not see."""
    if user.email_verified_at is not None:
        when, link = iso(token.created_at), accounts.link(_TOKENS_PAGE)
        await accounts.outbox.add(tx, texts.new_token(user.email, token.name, when, ip, link))
