"""Narrows lists of repos with the text index, if that is faster than reading the list in order.

The conditions of the list stay the same: the index only selects candidates, which include every repo of the list.
"""

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.hub.listing.store import RepoFilter
from hubgate.server.hub.search.queries import containing, visible_to
from hubgate.server.search.store import is_complete
from hubgate.server.search.words import MAX_QUERY_WORDS, kind_token, owner_token, tag_token, words_of
from hubgate.server.storage.database import TextIndex, Tx
from hubgate.server.storage.text_query import AnyOf, Term, TextQuery

# With more candidates, a page is found sooner by reading the list in order.
MAX_CANDIDATES = 2_000
# Owners whose names contain a word. A word in the names of more owners does not narrow a list.
MAX_OWNERS = 100
# Shorter words are in too many names.
MIN_LENGTH = 3


async def narrow(tx: Tx, index: TextIndex, repo_filter: RepoFilter, visible: VisibleRepos) -> str | None:
    """The value of `words` for `TextIndex.matching`; None if the list is better read in order."""
    words = [word for text in repo_filter.search_terms for word in words_of(text) if len(word) >= MIN_LENGTH]
    if not (words or repo_filter.tags) or not await is_complete(tx):
        return None
    groups: list[AnyOf] = [(Term(tag_token(tag)),) for tag in repo_filter.tags]
    for word in list(dict.fromkeys(words))[:MAX_QUERY_WORDS]:
        in_name = containing(word)
        accounts = TextQuery(((Term(kind_token("user")), Term(kind_token("org"))), in_name))
        owners = await index.newest(tx, "account", accounts, None, MAX_OWNERS + 1)
        if len(owners) <= MAX_OWNERS:
            groups.append((*in_name, *(Term(owner_token(owner)) for _, owner in owners)))
    if not groups:
        return None
    if repo_filter.type:
        groups.append((Term(kind_token(repo_filter.type)),))
    if repo_filter.owner_id:
        groups.append((Term(owner_token(repo_filter.owner_id)),))
    groups.append(visible_to((*visible.owners, *visible.owners_of_created)))
    query = TextQuery(tuple(groups))
    return index.expression(query) if await index.is_selective(tx, query, MAX_CANDIDATES) else None
