"""Documents of everything that was stored before the search index existed, added in the background.

A document that a change has added since is more recent and stays. Changes of a repo may also update parts of existing
documents only, so its row is locked while a document is added.
"""

import asyncio
import logging
from dataclasses import dataclass

import pygit2

from hubgate.server.accounts import search_documents as account_documents
from hubgate.server.accounts import store as account_store
from hubgate.server.errors import HubError
from hubgate.server.hub.collections import search_documents as collection_documents
from hubgate.server.hub.collections import store as collection_store
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import search_documents as repo_documents
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.card import card_at
from hubgate.server.hub.repos.model import Card, Repo
from hubgate.server.hub.search import store
from hubgate.server.search.store import INDEX_COMPLETE, Document, add_missing
from hubgate.server.storage.database import Tx

log = logging.getLogger("hubgate.search")

EVERY_SECONDS = 30.0
ROWS_PER_STEP = 100
ROWS_AT_ONCE = 10


@dataclass
class SearchIndexer:
    """Adds missing documents, table by table, once in the life of its process: a process of an older version may have
    stored rows without documents.
    """

    repos: Repos
    _table: int = 0
    _after: str = ""

    async def step(self) -> bool:
        """Add the documents of one batch; return whether there may be more."""
        if self._table == len(store.SEARCHED_TABLES):
            return False
        table, after = store.SEARCHED_TABLES[self._table], self._after
        ids = await self.repos.db.read_long(lambda tx: store.without_document(tx, table, after, ROWS_PER_STEP))
        for start in range(0, len(ids), ROWS_AT_ONCE):
            await asyncio.gather(*(self._add(table, each) for each in ids[start : start + ROWS_AT_ONCE]))
        self._after = ids[-1] if ids else ""
        if len(ids) < ROWS_PER_STEP:
            self._table, self._after = self._table + 1, ""
        if self._table == len(store.SEARCHED_TABLES):
            await self._record_completion()
        return True

    async def _add(self, table: str, row_id: str) -> None:
        card = await self._card(row_id) if table == "repos" else None

        async def unit(tx: Tx) -> None:
            document = await _document_of(tx, table, row_id, card)
            if document is not None:
                await add_missing(tx, document)

        await self.repos.db.write(unit)

    async def _card(self, repo_id: str) -> tuple[str | None, Card] | None:
        """The head of a repo and its card; without words if the card cannot be read."""
        repo = await repo_store.by_id(self.repos.db, repo_id)
        if repo is None:
            return None
        try:
            return repo.head_sha, await card_at(self.repos.folders.of(repo.id), repo.head_sha, repo.type)
        except (HubError, KeyError, OSError, pygit2.GitError) as error:
            log.warning("the card of the repo %s cannot be searched: %s", repo.id, error)
            return repo.head_sha, Card({}, repo.tag_list)

    async def _record_completion(self) -> None:
        now = self.repos.clock()
        await self.repos.db.write(lambda tx: account_store.record_milestone(tx, INDEX_COMPLETE, now))


async def _document_of(tx: Tx, table: str, row_id: str, card: tuple[str | None, Card] | None) -> Document | None:
    """The document of a row as it is now; None if the row is gone."""
    match table:
        case "users":
            user = await account_store.user(tx, row_id)
            return account_documents.document_of(user) if user else None
        case "organizations":
            organization = await account_store.organization(tx, row_id)
            return account_documents.document_of(organization) if organization else None
        case "collections":
            collection = await collection_store.by_id(tx, row_id)
            return collection_documents.document_of(collection) if collection else None
        case "discussions":
            discussion = await store.discussion_by_id(tx, row_id)
            repo = await _locked_repo(tx, discussion.repo_id) if discussion else None
            discussion = await store.discussion_by_id(tx, row_id) if repo else None
            return (
                repo_documents.document_of_discussion(repo, row_id, discussion.title) if repo and discussion else None
            )
        case _:
            repo = await _locked_repo(tx, row_id)
            # After a push in between, the push has added the document.
            is_current = repo is not None and card is not None and card[0] == repo.head_sha
            return repo_documents.document_of(repo, card[1]) if repo and card and is_current else None


async def _locked_repo(tx: Tx, repo_id: str) -> Repo | None:
    return await repo_store.by_id(tx, repo_id) if await repo_store.lock(tx, repo_id) is not None else None
