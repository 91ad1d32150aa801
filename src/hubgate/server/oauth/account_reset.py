"""What a user's new password ends here: the sign-ins of apps, and in an account that was never proven all the rest."""

from collections.abc import Sequence
from dataclasses import replace

from hubgate.server.accounts.ended import Ended
from hubgate.server.oauth.apps import store as app_store
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.device import store as device_store
from hubgate.server.oauth.tokens import store as token_store
from hubgate.server.storage.database import Tx


async def end_sign_ins(tx: Tx, user_id: str, now: int) -> Ended:
    """Codes and tokens of every app. What the user allowed the apps stays; they get new tokens by a new sign-in.

    For a unit that holds the user. The consents first, as everywhere: a refresh at the same moment came before this, so
    that its tokens are seen, or finds its refresh token gone.
    """
    await consent_store.hold_of_user(tx, user_id)
    tokens, families = await token_store.count_of_user(tx, user_id, now)
    await device_store.end_of_user(tx, user_id)
    await token_store.end_of_user(tx, user_id)
    return Ended(app_tokens=tokens, refresh_tokens=families)


async def end_everything(tx: Tx, user_id: str, owners: Sequence[str], now: int) -> Ended:
    """The same, with the consents and the apps of the owners; for others, these apps' consents and tokens end too."""
    # Locked before the consents, as by the deletion of an app.
    own = [client_id for owner in owners for client_id in await app_store.hold_of_owner(tx, owner)]
    connected = await consent_store.hold_of_user(tx, user_id)
    ended = await end_sign_ins(tx, user_id, now)
    await consent_store.remove_of_user(tx, user_id)
    for client_id in own:
        await consent_store.remove_of_client(tx, client_id)
        await token_store.end_of_client(tx, client_id)
        await app_store.remove(tx, client_id)
    return replace(ended, connected_apps=connected, apps=len(own))
