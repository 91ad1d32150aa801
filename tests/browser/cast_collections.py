"""Collections and access requests of the stage."""

from hubgate.server.accounts.model import Organization, User
from hubgate.server.audit.model import SYSTEM
from hubgate.server.hub.collections import changes, items, store
from hubgate.server.hub.collections.changes import NewCollection
from hubgate.server.hub.collections.model import search_text, title_key
from hubgate.server.hub.context import Repos
from hubgate.server.hub.gating import access_requests
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import RepoOwner
from hubgate.server.storage.database import Tx

_ID = "a" * 24
_TITLE = "Models for phones and other small machines"
AT = f"/collections/acme/models-for-phones-and-other-small-machines-{_ID}"


async def add_collections(repos: Repos, ada: User, acme: Organization) -> None:
    """Add a collection with a fixed id, items and notes, and a private one without items."""
    now = repos.clock()
    description = "Chosen by hand, measured on one phone, and listed with the smallest first."

    async def add(tx: Tx) -> bool:
        return await store.add(
            tx,
            {
                "id": _ID,
                "owner_kind": "org",
                "owner_id": acme.id,
                "title": _TITLE,
                "title_key": title_key(_TITLE),
                "description": description,
                "search_text": search_text(_TITLE, description),
                "theme": "green",
                "private": 0,
                "position": 0,
                "created_at": now,
                "updated_at": now,
            },
        )

    await repos.db.write(add)
    own = RepoOwner("user", ada.id, ada.name)
    empty = await changes.create(repos, own, NewCollection("Still empty", private=True, theme="pink"), SYSTEM)
    listed = await store.by_id(repos.db, _ID)
    assert listed is not None
    notes = {"acme/vision-tiny": "The smallest.\nStart here.", "bob/gated-model": "Ask first."}
    for name, note in notes.items():
        repo = await repo_store.named(repos.db, "model", *name.split("/"))
        assert repo is not None
        await items.add(repos, listed, repo, note)
    await items.add(repos, listed, empty, "")


async def add_access_requests(repos: Repos, ada: User) -> None:
    gated = await repo_store.named(repos.db, "model", "bob", "gated-model")
    assert gated is not None
    await access_requests.ask(repos, gated, ada, {"Country": "Norway", "What will you use it for?": "A comparison"})
