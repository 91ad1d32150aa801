"""SQL statements on documents. Each runs in the transaction of the change that it belongs to."""

from msgspec import Struct

from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Params, insert_row
from hubgate.server.storage.text_query import marked

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
    await tx.exec(_PUT, _row(document))


async def add_missing(tx: Tx, document: Document) -> None:
    """Add a document, unless the target has one, which is at least as recent."""
    await tx.exec(_ADD_MISSING, _row(document))


def _row(document: Document) -> Params:
    return {
        "target": document.target,
        "section": document.section,
        "repo_id": document.repo_id,
        "access": marked(document.section, document.access),
        "names": marked(document.section, document.names),
        "texts": marked(document.section, document.texts),
    }


async def set_names(tx: Tx, repo_id: str, names: str) -> None:
    """Set the name under which a repo is found."""
    await tx.exec(
        "UPDATE search_documents SET names = :names WHERE target = :repo_id AND names <> :names",
        {"repo_id": repo_id, "names": marked("repo", names)},
    )


async def set_access(tx: Tx, repo_id: str, access: str) -> None:
    """Set who may find a repo and its discussions."""
    for section in ("repo", "discussion"):
        await tx.exec(
            """
            UPDATE search_documents SET access = :access
            WHERE repo_id = :repo_id AND section = :section AND access <> :access
            """,
            {"repo_id": repo_id, "section": section, "access": marked(section, access)},
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
