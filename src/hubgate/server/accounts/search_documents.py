"""The documents of users and organizations in the search index. Names are public, except those of disabled users."""

from hubgate.server.accounts import store
from hubgate.server.accounts.model import Organization, User
from hubgate.server.search.store import Document, put
from hubgate.server.search.words import PUBLIC, exact_token, joined, kind_token, name_tokens
from hubgate.server.storage.database import Tx


def document_of(account: User | Organization) -> Document:
    kind = kind_token("user" if isinstance(account, User) else "org")
    names = [kind, exact_token(account.name), *name_tokens(account.name, account.fullname)]
    access = "" if isinstance(account, User) and account.disabled_at is not None else PUBLIC
    return Document(account.id, "account", None, access, joined(names), "")


async def index_user(tx: Tx, user_id: str) -> None:
    """Index a user after a change, in its transaction."""
    found = await store.user(tx, user_id)
    if found is not None:
        await put(tx, document_of(found))


async def index_organization(tx: Tx, org_id: str) -> None:
    """Index an organization after a change, in its transaction."""
    found = await store.organization(tx, org_id)
    if found is not None:
        await put(tx, document_of(found))
