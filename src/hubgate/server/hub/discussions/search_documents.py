"""The documents of discussions in the search index."""

from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.search_documents import document_of_discussion
from hubgate.server.search.store import put
from hubgate.server.storage.database import Tx


async def index_title(tx: Tx, repo_id: str, discussion: Discussion) -> None:
    """Index a discussion after a change of its title. The transaction must have locked the repo, which may have moved
    since the request was authorized.
    """
    repo = await repo_store.by_id(tx, repo_id)
    if repo is not None:
        await put(tx, document_of_discussion(repo, discussion.id, discussion.title))
