"""Narrows lists of repos with the text index, if that is faster than reading the list in order.

The conditions of the list stay the same: the index only selects candidates, which include every repo of the list.
"""

import re

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.hub.listing import store
from hubgate.server.hub.listing.store import RepoFilter
from hubgate.server.hub.search.queries import any_of, containing, visible_documents
from hubgate.server.search.store import is_complete
from hubgate.server.search.words import kind_token, owner_token, tag_token, words_of
from hubgate.server.storage.database import TextIndex, Tx
from hubgate.server.storage.sqltext import Params
from hubgate.server.storage.text_query import AllOf, AnyOf, TextQuery

# With more candidates, a page is found sooner by reading the list in order; not if few of them may be gated.
MAX_CANDIDATES = 1_000
MAX_CANDIDATES_IF_GATED = 5_000
# Owners whose names have the words of a text. A text with more of them does not narrow a list.
MAX_OWNERS = 100
# Shorter words are in too many names.
MIN_LENGTH = 3

# Parts of `owner/name`, in lower case.
_POSSIBLE = re.compile(r"[a-z0-9_.-]*/?[a-z0-9_.-]*\Z")


def can_match(repo_filter: RepoFilter) -> bool:
    """Whether `owner/name` can contain the texts of the filter."""
    return all(_POSSIBLE.match(text.lower()) for text in repo_filter.search_terms)


async def narrow(tx: Tx, index: TextIndex, repo_filter: RepoFilter, visible: VisibleRepos) -> Params | None:
    """The parameters of `TextIndex.matching`; None if the list is better read in order."""
    if not (repo_filter.search_terms or repo_filter.tags) or not await is_complete(tx):
        return None
    await index.prepare(tx, only_searches=False)
    groups: list[AnyOf] = [any_of([tag_token(tag)]) for tag in repo_filter.tags]
    for text in repo_filter.search_terms:
        groups += await _groups_of(tx, index, text.lower())
    if not groups:
        return None
    if repo_filter.type:
        groups.append(any_of([kind_token(repo_filter.type)]))
    if repo_filter.owner_id:
        groups.append(any_of([owner_token(repo_filter.owner_id)]))
    query = TextQuery("repo", tuple(dict.fromkeys(groups)), access=visible_documents(visible))
    limit = MAX_CANDIDATES_IF_GATED if repo_filter.gated else MAX_CANDIDATES
    return index.parameters(query) if await index.is_selective(tx, query, limit) else None


async def _groups_of(tx: Tx, index: TextIndex, text: str) -> AllOf:
    """What a repo has whose `owner/name` contains the text: the text is in one of the two names, or, with a slash, at
    the end of the first and the beginning of the second.
    """
    left, slash, right = text.partition("/")
    in_name = tuple(containing(word) for word in words_of(right if slash else text) if len(word) >= MIN_LENGTH)
    owners = await _owners_with(tx, index, left)
    if owners is None:
        return in_name if slash else ()
    owned = any_of(map(owner_token, owners))
    if slash:
        # No document has this token, which stands for no owner at all.
        return (*in_name, owned or any_of(["o:"])) if left else in_name
    return tuple((*group, *owned) for group in in_name)


async def _owners_with(tx: Tx, index: TextIndex, text: str) -> list[str] | None:
    """The ids of owners whose names contain a text; None if there may be too many."""
    words = [word for word in words_of(text) if len(word) >= MIN_LENGTH]
    if not words:
        return None
    query = TextQuery("account", tuple(map(containing, words)))
    found = [target for _, target in await index.newest(tx, query, None, MAX_OWNERS + 1)]
    if len(found) > MAX_OWNERS:
        return None
    names = await store.names_of_owners(tx, found)
    return [owner_id for owner_id, name in names.items() if text in name.lower()]
