"""Making, renaming, refreshing and revoking personal tokens."""

from collections.abc import Iterable, Sequence

from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import TokenRole
from hubgate.server.accounts.tokens import store
from hubgate.server.accounts.tokens.model import MOST_PER_USER, NOTED_EVERY, PersonalToken, check_token_name
from hubgate.server.accounts.tokens.text import TokenKind, last_four, new_token, read_token
from hubgate.server.clock import iso
from hubgate.server.errors import NotFound, Unprocessable
from hubgate.server.ids import new_id
from hubgate.server.mail import texts
from hubgate.server.storage.database import Database, Tx

_ABSENT = "There is no such token."


async def create(accounts: Accounts, user: User, name: str, role: TokenRole, ip: str) -> tuple[str, PersonalToken]:
    """The token's text, which is nowhere kept, and what is. The user is told by mail."""
    now, name = accounts.clock(), check_token_name(name)
    text, key = new_token(TokenKind.PERSONAL, now)
    token = PersonalToken(new_id(now), user.id, name, role, last_four(text), now, None)

    async def unit(tx: Tx) -> None:
        if len(await store.of_user(tx, user.id)) >= MOST_PER_USER:
            raise Unprocessable(f"A user has at most {MOST_PER_USER} tokens. Revoke one first.")
        await store.add(tx, key, token)
        link = accounts.link("/settings/tokens")
        await accounts.outbox.add(tx, texts.new_token(user.email, name, iso(now), ip, link))

    await accounts.db.write(unit)
    accounts.outbox.hurry()
    return text, token


async def of_user(accounts: Accounts, user_id: str) -> Sequence[PersonalToken]:
    return await accounts.db.read_long(lambda tx: store.of_user(tx, user_id))


async def get(accounts: Accounts, user_id: str, token_id: str) -> PersonalToken:
    return await _required(accounts.db, user_id, token_id)


async def _required(tx: Tx | Database, user_id: str, token_id: str) -> PersonalToken:
    token = await store.by_id(tx, user_id, token_id)
    if token is None:
        raise NotFound(_ABSENT)
    return token


async def rename(accounts: Accounts, user_id: str, token_id: str, name: str) -> PersonalToken:
    name = check_token_name(name)
    if not await accounts.db.write(lambda tx: store.rename(tx, user_id, token_id, name)):
        raise NotFound(_ABSENT)
    return await get(accounts, user_id, token_id)


async def refresh(accounts: Accounts, user: User, token_id: str, ip: str) -> tuple[str, PersonalToken]:
    """A new text for the same token. The old one stops working at once."""
    now = accounts.clock()
    text, key = new_token(TokenKind.PERSONAL, now)

    async def unit(tx: Tx) -> PersonalToken:
        if not await store.replace_key(tx, user.id, token_id, key, last_four(text), now):
            raise NotFound(_ABSENT)
        token = await _required(tx, user.id, token_id)
        link = accounts.link("/settings/tokens")
        await accounts.outbox.add(tx, texts.new_token(user.email, token.name, iso(now), ip, link))
        return token

    token = await accounts.db.write(unit)
    accounts.outbox.hurry()
    return text, token


async def revoke(accounts: Accounts, user_id: str, token_id: str) -> None:
    if not await accounts.db.write(lambda tx: store.remove(tx, user_id, token_id)):
        raise NotFound(_ABSENT)


async def revoke_leaked(accounts: Accounts, leaked: Iterable[str]) -> None:
    """By whoever found them. What is not a token of ours is passed over; nothing is told about which were."""
    keys = [found[1] for text in leaked if (found := read_token(text)) and found[0] is TokenKind.PERSONAL]

    async def unit(tx: Tx) -> None:
        for key in keys:
            if removed := await store.remove_by_key(tx, key):
                email, name = removed
                link = accounts.link("/settings/tokens")
                await accounts.outbox.add(tx, texts.token_revoked(email, name, link))

    if keys:
        await accounts.db.write(unit)
        accounts.outbox.hurry()


def is_to_be_noted(token: PersonalToken, now: int) -> bool:
    return token.last_used_at is None or now - token.last_used_at >= NOTED_EVERY
