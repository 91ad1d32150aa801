"""The documents of repos and their discussions in the search index."""

from hubgate.server.hub.repos.model import Card, Repo
from hubgate.server.search import store
from hubgate.server.search.store import Document
from hubgate.server.search.words import (
    MAX_TEXT_WORDS,
    access_tokens,
    created_token,
    exact_token,
    joined,
    kind_token,
    name_tokens,
    repo_token,
    tag_tokens,
)
from hubgate.server.storage.database import Tx


def document_of(repo: Repo, card: Card) -> Document:
    """The document of a repo whose head has this card. The name of the owner is in the owner's document."""
    texts = joined([*tag_tokens(card.tags), *card.words], MAX_TEXT_WORDS)
    return Document(repo.id, "repo", repo.id, _access(repo), _names(repo), texts)


def document_of_discussion(repo: Repo, discussion_id: str, title: str) -> Document:
    """The document of a discussion or pull request: only its title, because comments can be hidden."""
    names = [exact_token(title), *name_tokens(title)]
    return Document(discussion_id, "discussion", repo.id, _access(repo), joined(names), "")


async def update_name_and_access(tx: Tx, repo: Repo) -> None:
    """Update the documents of a repo and its discussions after a move or a change of visibility."""
    await store.set_names(tx, repo.id, _names(repo))
    await store.set_access(tx, repo.id, _access(repo))


def _names(repo: Repo) -> str:
    return joined([kind_token(repo.type), exact_token(repo.name), *name_tokens(repo.name)])


def _access(repo: Repo) -> str:
    created = [created_token(repo.owner_id, repo.creator_client)] if repo.creator_client else []
    return access_tokens(repo.owner_id, private=bool(repo.private), private_tokens=[repo_token(repo.id), *created])
