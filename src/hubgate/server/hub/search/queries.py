"""Queries on the text index: what a user typed, in tiers from the best matches to the weakest. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from hubgate.server.access.visibility import VisibleCollections, VisibleRepos
from hubgate.server.search.words import (
    BEGINNINGS,
    BEGINNINGS_OF_RESTS,
    MAX_QUERY_WORDS,
    PUBLIC,
    created_token,
    exact_token,
    owner_token,
    private_token,
    repo_token,
    words_of,
)
from hubgate.server.storage.text_query import Access, AllOf, AnyOf, Term

LONGEST_TEXT = 200

# By word: the ids of owners whose names match.
OwnersByWord = Mapping[str, Sequence[str]]


class SearchText(Struct, frozen=True):
    """What a user typed."""

    text: str
    words: tuple[str, ...]
    # The name that the text may be, with its words, and the words of the owner before it, as in `owner/name`.
    name: str
    name_words: tuple[str, ...]
    owner_words: tuple[str, ...] = ()


def parse(text: str) -> SearchText:
    text = text[:LONGEST_TEXT]
    owner, _, name = text.rpartition("/")
    # No owner is looked for by a single character.
    owner_words = tuple(word for word in _words(owner) if len(word) > 1)
    return SearchText(text, _words(text), name, _words(name), owner_words)


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words_of(text)))[:MAX_QUERY_WORDS]


def any_of(tokens: Iterable[str]) -> AnyOf:
    return tuple(map(Term, tokens))


def visible_documents(visible: VisibleRepos | VisibleCollections) -> Access:
    """Public documents, and private ones that are visible."""
    private = [private_token(owner) for owner in visible.owners]
    if isinstance(visible, VisibleRepos):
        client_id = visible.client_id or ""
        private += [created_token(owner, client_id) for owner in visible.owners_of_created]
        private += map(repo_token, visible.repos)
    return Access(PUBLIC, tuple(private))


def tiers(text: SearchText, owners: OwnersByWord) -> list[AllOf]:
    """The whole name; each word begins a word of the name, or of the owner's name; each word is anywhere in the name
    or in the text. A document may be in several tiers.
    """
    if text.owner_words and all(owners.get(word) for word in text.owner_words):
        owned = tuple(any_of(map(owner_token, owners[word])) for word in text.owner_words)
        begins = tuple(_begins(word, {}) for word in text.name_words)
        anywhere = tuple(_anywhere(word, {}) for word in text.name_words)
        return [(any_of([exact_token(text.name)]), *owned), (*begins, *owned), (*anywhere, *owned)]
    # Without an owner, as in "and/or", the slash has no meaning.
    return [
        (any_of([exact_token(text.text)]),),
        tuple(_begins(word, owners) for word in text.words),
        tuple(_anywhere(word, owners) for word in text.words),
    ]


def beginning(word: str) -> Term:
    """Names with a word that begins with this one."""
    return Term(word, is_prefix=len(word) not in BEGINNINGS and len(word) > 1)


def _inside(word: str) -> AnyOf:
    """Names with a word that has this one after its first character."""
    if len(word) < BEGINNINGS_OF_RESTS.start:
        return ()
    return (Term(f"~{word}", is_prefix=len(word) not in BEGINNINGS_OF_RESTS),)


def _begins(word: str, owners: OwnersByWord) -> AnyOf:
    return (beginning(word), *any_of(map(owner_token, owners.get(word, ()))))


def _anywhere(word: str, owners: OwnersByWord) -> AnyOf:
    return (*_begins(word, owners), *_inside(word), Term(f".{word}"))


def containing(word: str) -> AnyOf:
    """Names that contain a word of at least three characters."""
    return (beginning(word), *_inside(word))
