"""SQL statements on documents. Each runs in the transaction of the change that it belongs to."""

from msgspec import Struct
from msgspec.structs import asdict

from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import insert_row

INDEX_COMPLETE = "search index"


class Document(Struct, frozen=True):
    """What is found of a repo, discussion, user, organization or collection, in tokens (words.py)."""

    # The id of the thing itself.
    target: str
    # "repo", "discussion", "account" or "collection".
    section: str
    # The repo, also of a discussion.
    repo_id: str | None
    access: str
    names: str
    texts: str


_INTO = "INSERT INTO search_documents (target, section, repo_id, access, names, texts)"
# An unchanged document is not written: most commits do not change the card.
_PUT = insert_row(
    _INTO,
    """
    ON CONFLICT (target) DO UPDATE SET access = excluded.access, names = excluded.names, texts = excluded.texts
    WHERE search_documents.access <> excluded.access OR search_documents.names <> excluded.names
        OR search_documents.texts <> excluded.texts
    """,
)
_ADD_MISSING = insert_row(_INTO, "ON CONFLICT (target) DO NOTHING")


async def put(tx: Tx, document: Document) -> None:
    """Add a document, or replace the one with the same target."""
    await tx.exec(_PUT, asdict(document))


async def add_missing(tx: Tx, document: Document) -> None:
    """Add a document, unless the target has one, which is at least as recent."""
    await tx.exec(_ADD_MISSING, asdict(document))


async def set_names(tx: Tx, target: str, names: str) -> None:
    await tx.exec(
        "UPDATE search_documents SET names = :names WHERE target = :target AND names <> :names",
        {"target": target, "names": names},
    )


async def set_access(tx: Tx, repo_id: str, access: str) -> None:
    """Set who may find a repo and its discussions."""
    await tx.exec(
        "UPDATE search_documents SET access = :access WHERE repo_id = :repo_id AND access <> :access",
        {"repo_id": repo_id, "access": access},
    )


async def remove(tx: Tx, target: str) -> None:
    """Remove a document. Those of a repo and its discussions are removed with the repo's row."""
    await tx.exec("DELETE FROM search_documents WHERE target = :target", {"target": target})


async def remove_collections_of(tx: Tx, owner_id: str) -> None:
    """Remove the documents of an owner's collections, before the collections themselves."""
    await tx.exec(
        "DELETE FROM search_documents WHERE target IN (SELECT id FROM collections WHERE owner_id = :owner_id)",
        {"owner_id": owner_id},
    )


async def is_complete(tx: Tx) -> bool:
    """Whether everything that was stored before the index existed has its document."""
    return await tx.one("SELECT 1 FROM milestones WHERE name = :name", {"name": INDEX_COMPLETE}) is not None
