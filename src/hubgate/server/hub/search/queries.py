"""Queries on the text index: what a user typed, in tiers from the best matches to the weakest. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from hubgate.server.access.visibility import VisibleCollections, VisibleRepos
from hubgate.server.search.words import (
    MAX_QUERY_WORDS,
    PUBLIC,
    created_token,
    exact_token,
    owner_token,
    repo_token,
    words_of,
)
from hubgate.server.storage.text_query import AllOf, AnyOf, Term

LONGEST_TEXT = 200
# Shorter parts of names occur nearly everywhere.
MIN_PART_LENGTH = 3

# By word: the ids of owners whose names match.
OwnersByWord = Mapping[str, Sequence[str]]


class SearchText(Struct, frozen=True):
    """What a user typed."""

    words: tuple[str, ...]
    # The name that the text may be, and the words of the owner before it, as in `owner/name`.
    name: str
    owner_words: tuple[str, ...] = ()


def parse(text: str) -> SearchText:
    text = text[:LONGEST_TEXT]
    owner, slash, name = text.rpartition("/")
    words = tuple(dict.fromkeys(words_of(text)))[:MAX_QUERY_WORDS]
    return SearchText(words, name, tuple(words_of(owner))[:MAX_QUERY_WORDS] if slash else ())


def any_of(tokens: Iterable[str]) -> AnyOf:
    return tuple(map(Term, tokens))


def visible_documents(visible: VisibleRepos | VisibleCollections | None = None) -> AnyOf:
    """Public documents, and private ones that are visible."""
    tokens = [PUBLIC]
    if visible is not None:
        tokens += map(owner_token, visible.owners)
    if isinstance(visible, VisibleRepos):
        client_id = visible.client_id or ""
        tokens += [created_token(owner, client_id) for owner in visible.owners_of_created]
        tokens += map(repo_token, visible.repos)
    return any_of(tokens)


def tiers(text: SearchText, owners: OwnersByWord) -> list[AllOf]:
    """The whole name; each word begins a word of the name, or of the owner's name; each word is anywhere in the name
    or in the text. A document may be in several tiers.
    """
    return [
        (any_of([exact_token(text.name)]), *(_owned_by(word, owners) for word in text.owner_words)),
        tuple(_begins(word, owners) for word in text.words),
        tuple(_anywhere(word, owners) for word in text.words),
    ]


def _owned_by(word: str, owners: OwnersByWord) -> AnyOf:
    # A group cannot be empty; no document has this token.
    return any_of(map(owner_token, owners.get(word, ()))) or any_of(["o:"])


def _begins(word: str, owners: OwnersByWord) -> AnyOf:
    return (Term(word, is_prefix=len(word) > 1), *any_of(map(owner_token, owners.get(word, ()))))


def _anywhere(word: str, owners: OwnersByWord) -> AnyOf:
    parts = (Term(f"~{word}", is_prefix=True),) if len(word) >= MIN_PART_LENGTH else ()
    return (*_begins(word, owners), *parts, Term(f".{word}"))


def containing(word: str) -> AnyOf:
    """Names that contain a word of at least two characters."""
    return (Term(word, is_prefix=True), Term(f"~{word}", is_prefix=True))
