"""Searches: the best matches that the caller may see, newest first within each tier of matches.

The index knows who may see a document; what it finds is read with the conditions of lists too, in one snapshot.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.access.identity import Identity
from hubgate.server.access.visibility import visible_collections, visible_repos
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.search import store
from hubgate.server.hub.search.queries import (
    OwnersByWord,
    SearchText,
    any_of,
    beginning,
    parse,
    tiers,
    visible_documents,
)
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.search.store import is_complete
from hubgate.server.search.words import PUBLIC, exact_token, kind_token
from hubgate.server.storage.database import TextIndex, Tx
from hubgate.server.storage.text_query import Access, TextQuery

# The tier and the number of the last document shown.
CURSOR = (int, int)
# Owners whose names match a word; their repos match the word too.
MAX_OWNERS_OF_WORD = 10
# Models, datasets and spaces are searched together first: this many times as many as one page of each.
TOGETHER = 8
# Documents of earlier tiers that are found again and left out.
MAX_KNOWN = 500


class Section(Enum):
    """A kind of result: its section of documents, and the kind of documents in it; "" for all."""

    REPOS = ("repo", "")
    MODELS = ("repo", "model")
    DATASETS = ("repo", "dataset")
    SPACES = ("repo", "space")
    ACCOUNTS = ("account", "")
    USERS = ("account", "user")
    ORGANIZATIONS = ("account", "org")
    COLLECTIONS = ("collection", "")
    DISCUSSIONS = ("discussion", "")

    def __init__(self, document_section: str, kind: str) -> None:
        self.document_section, self.kind = document_section, kind

    def is_part_of(self, whole: "Section") -> bool:
        return bool(self.kind) and self.document_section == whole.document_section


class Found(Struct, frozen=True):
    """A result, with its place in the order of results."""

    tier: int
    number: int
    # Repo, FoundAccount, Collection or FoundDiscussion, by section.
    item: Any

    @property
    def kind(self) -> str:
        """The kind of a repo or account."""
        return str(self.item.type if isinstance(self.item, Repo) else self.item.kind)


class SearchResults(Struct, frozen=True):
    pages: Mapping[Section, Page[Found]]
    # False while the background process still adds what was stored before the index existed.
    is_complete: bool


async def search(
    repos: Repos, identity: Identity, text: str, sections: Sequence[Section], page_request: PageRequest
) -> SearchResults:
    """One page of results of each section. Cursors are for searches of a single section."""
    searched, index = parse(text), repos.db.text_index

    async def read(tx: Tx) -> SearchResults:
        await index.prepare(tx, only_searches=True)
        owners = await _owners_by_word(tx, index, searched)

        async def page_of_section(section: Section, request: PageRequest) -> Page[Found]:
            rows = await _documents(tx, index, section, identity, searched, owners, request)
            return await _page(tx, section, identity, rows, request)

        pages: dict[Section, Page[Found]] = {}
        for whole in (Section.REPOS, Section.ACCOUNTS):
            parts = [section for section in sections if section.is_part_of(whole)]
            if len(parts) > 1:
                together = await page_of_section(whole, PageRequest(TOGETHER * page_request.limit))
                pages |= _split(together, parts, page_request.limit)
        for section in sections:
            if section not in pages:
                pages[section] = await page_of_section(section, page_request)
        return SearchResults(pages, await is_complete(tx))

    return await repos.db.read_long(read)


def _split(together: Page[Found], parts: Sequence[Section], limit: int) -> dict[Section, Page[Found]]:
    """The results of several sections from those of all; without sections of which there may be more results."""
    pages = {}
    for section in parts:
        items = [found for found in together.items if found.kind == section.kind]
        if len(items) >= limit or together.next_cursor is None:
            pages[section] = Page(items[:limit], None)
    return pages


async def _owners_by_word(tx: Tx, index: TextIndex, searched: SearchText) -> OwnersByWord:
    """Owners whose names begin with a word or have a word that does. If a text as `owner/name` names owners, only those
    of the words before the slash.
    """
    owners = {word: await _owners_of(tx, index, word) for word in searched.owner_words}
    if owners and all(owners.values()):
        return owners
    others = [word for word in searched.words if len(word) > 1 and word not in owners]
    return owners | {word: await _owners_of(tx, index, word) for word in others}


async def _owners_of(tx: Tx, index: TextIndex, word: str) -> list[str]:
    """Owners of a word, first the owner who has that name."""
    named = await index.newest(tx, TextQuery("account", (any_of([exact_token(word)]),)), None, 1)
    begins = await index.newest(tx, TextQuery("account", ((beginning(word),),)), None, MAX_OWNERS_OF_WORD)
    return list(dict.fromkeys(target for _, target in (*named, *begins)))[:MAX_OWNERS_OF_WORD]


async def _documents(
    tx: Tx,
    index: TextIndex,
    section: Section,
    identity: Identity,
    searched: SearchText,
    owners: OwnersByWord,
    page_request: PageRequest,
) -> list[tuple[int, int, str]]:
    """Tier, number and target of the documents found, in order."""
    if not searched.words:
        return []
    if section.document_section == "account":
        # Accounts have no owners.
        searched, owners = replace(searched, owner_words=()), {}
    kinds, access = (any_of([kind_token(section.kind)]),) if section.kind else (), _access(section, identity)
    queries = [
        TextQuery(section.document_section, (*kinds, *groups), access=access) for groups in tiers(searched, owners)
    ]
    first_tier, before = (int(part) for part in page_request.after) if page_request.after else (0, None)
    rows: list[tuple[int, int, str]] = []
    for tier, query in enumerate(queries):
        missing = page_request.fetch_limit - len(rows)
        if tier < first_tier or not missing:
            continue
        # A document of an earlier tier is usually found again.
        known = {number for _, number, _ in rows}
        if page_request.after is not None:
            known |= await _numbers(tx, index, queries[:tier])
        last = before if tier == first_tier else None
        found = await index.newest(tx, _without(query, queries[:tier], known), last, missing + len(known))
        rows += [(tier, number, target) for number, target in found if number not in known][:missing]
    return rows


async def _numbers(tx: Tx, index: TextIndex, queries: Sequence[TextQuery]) -> set[int]:
    """The numbers of documents that the queries find, at most MAX_KNOWN of each."""
    return {number for query in queries for number, _ in await index.newest(tx, query, None, MAX_KNOWN)}


def _without(query: TextQuery, earlier: Sequence[TextQuery], known: set[int]) -> TextQuery:
    """The query without the results of earlier ones, if these are too many to know. It takes longer."""
    if len(known) < MAX_KNOWN:
        return query
    return replace(query, none_of=tuple(each.all_of for each in earlier))


def _access(section: Section, identity: Identity) -> Access:
    match section.document_section:
        case "account":
            return Access(PUBLIC)
        case "collection":
            return visible_documents(visible_collections(identity))
        case _:
            return visible_documents(visible_repos(identity))


async def _page(
    tx: Tx, section: Section, identity: Identity, rows: Sequence[tuple[int, int, str]], page_request: PageRequest
) -> Page[Found]:
    page = page_of(rows, page_request, lambda row: row[:2])
    items = await _items(tx, section, identity, [target for _, _, target in page.items]) if page.items else {}
    shown = [Found(tier, number, items[target]) for tier, number, target in page.items if target in items]
    return Page(shown, page.next_cursor)


async def _items(tx: Tx, section: Section, identity: Identity, ids: Sequence[str]) -> Mapping[str, Any]:
    match section.document_section:
        case "repo":
            return await store.repos_among(tx, ids, visible_repos(identity))
        case "discussion":
            return await store.discussions_among(tx, ids, visible_repos(identity))
        case "collection":
            return await store.collections_among(tx, ids, visible_collections(identity))
        case _:
            return await store.accounts_among(tx, ids)
