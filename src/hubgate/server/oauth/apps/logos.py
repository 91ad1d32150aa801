"""Setting and removing the logo of an app."""

from hubgate.server.accounts.pictures import store
from hubgate.server.accounts.pictures.model import Picture, PictureOwner, address_of, logo_id
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.oauth.apps.management import lock_app, record_audit
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.storage.database import Tx


async def address_of_logo(oauth: OAuth, app: App) -> str:
    """The address of the app's logo; empty if it has none."""
    owner_id = logo_id(app.client_id)
    picture_id = await store.id_of(oauth.db, owner_id)
    return address_of(owner_id, picture_id) if picture_id else ""


async def set_logo(oauth: OAuth, app: App, picture: Picture, actor: Actor) -> None:
    now = oauth.clock()

    async def unit(tx: Tx) -> None:
        latest = await lock_app(tx, app, actor)
        await store.put(tx, PictureOwner(client_id=app.client_id), picture, now)
        what = f"changed the logo of the app {latest.name}"
        await record_audit(tx, latest, EntryType.APP_UPDATE, what, actor, now)

    await oauth.db.write(unit)


async def remove_logo(oauth: OAuth, app: App, actor: Actor) -> None:
    now = oauth.clock()

    async def unit(tx: Tx) -> None:
        latest = await lock_app(tx, app, actor)
        if await store.remove(tx, logo_id(app.client_id)):
            what = f"removed the logo of the app {latest.name}"
            await record_audit(tx, latest, EntryType.APP_UPDATE, what, actor, now)

    await oauth.db.write(unit)
