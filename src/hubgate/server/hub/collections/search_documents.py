"""The documents of collections in the search index."""

from hubgate.server.hub.collections.model import Collection
from hubgate.server.search.store import Document
from hubgate.server.search.words import (
    MAX_TEXT_WORDS,
    access_tokens,
    exact_token,
    joined,
    name_tokens,
    text_tokens,
)


def document_of(collection: Collection) -> Document:
    names = [exact_token(collection.title), *name_tokens(collection.title)]
    access = access_tokens(collection.owner_id, private=bool(collection.private))
    texts = joined(text_tokens(collection.description), MAX_TEXT_WORDS)
    return Document(collection.id, "collection", None, access, joined(names), texts)
