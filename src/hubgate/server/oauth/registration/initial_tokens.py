"""Initial access tokens (RFC 7591, section 1.2): the operator creates them, and clients register with them."""

import secrets
from collections.abc import Sequence

from hubgate.server.errors import NotFound
from hubgate.server.ids import new_id
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.registration import store
from hubgate.server.oauth.registration.initial_token import InitialToken
from hubgate.server.secret import fingerprint


async def create(oauth: OAuth) -> tuple[str, InitialToken]:
    """Create a token; returns its text, of which only a hash is stored."""
    now, text = oauth.clock(), f"hf_register_{secrets.token_urlsafe(32)}"
    token = InitialToken(new_id(now), text[-4:], now, None, 0)
    await oauth.db.write(lambda tx: store.add_token(tx, fingerprint(text), token))
    return text, token


async def list_all(oauth: OAuth) -> Sequence[InitialToken]:
    """All tokens, oldest first."""
    return await oauth.db.read(store.tokens)


async def revoke(oauth: OAuth, token_id: str) -> None:
    """Delete a token. Apps that were registered with it stay."""
    if not await oauth.db.write(lambda tx: store.remove_token(tx, token_id)):
        raise NotFound(
            f"Registration token {token_id[:60]} not found. List all with: hubgate admin registration-token list"
        )
