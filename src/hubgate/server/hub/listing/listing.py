"""Pages of lists of repos, and their counts and sizes, restricted to repos that the caller may see."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from hubgate.server.access.identity import Identity
from hubgate.server.access.visibility import visible_repos
from hubgate.server.hub.context import Repos
from hubgate.server.hub.lfs import store as lfs_store
from hubgate.server.hub.listing import store
from hubgate.server.hub.listing.narrowing import can_match, narrow
from hubgate.server.hub.listing.store import RepoFilter
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.storage.database import Tx

CURSOR = (int, str)
# Approximate characters of cards and tags on one page. A page ends at this limit, and its cursor continues from there.
MAX_PAGE_CHARACTERS = 2 * 1024 * 1024


class RepoCounts(Struct, frozen=True):
    models: int
    datasets: int
    spaces: int


async def list_repos(
    repos: Repos, identity: Identity, repo_filter: RepoFilter, page_request: PageRequest
) -> Page[Repo]:
    after = (int(page_request.after[0]), str(page_request.after[1])) if page_request.after else None
    visible = visible_repos(identity)
    if not can_match(repo_filter):
        return Page([], None)
    index = repos.db.text_index

    async def read(tx: Tx) -> list[Repo]:
        parameters = await narrow(tx, index, repo_filter, visible)
        source = store.Candidates(index.matching, parameters) if parameters is not None else None
        return await store.page(tx, repo_filter, visible, after, page_request.fetch_limit, source)

    rows = await repos.db.read_long(read)
    limited = PageRequest(_page_size(rows, page_request.limit), page_request.after)
    return page_of(rows, limited, lambda repo: (_sort_value(repo, repo_filter.sort), repo.id))


async def recent_repos(repos: Repos, identity: Identity, limit: int) -> list[Repo]:
    """The most recently changed repos of all types. Each type is queried separately, as the index is by type."""
    visible = visible_repos(identity)

    async def read(tx: Tx) -> list[Repo]:
        pages = [await store.page(tx, RepoFilter(type=kind.value), visible, None, limit) for kind in RepoType]
        found = [repo for page in pages for repo in page]
        return sorted(found, key=lambda repo: (repo.updated_at, repo.id), reverse=True)[:limit]

    return await repos.db.read_long(read)


class StorageUsage(Struct, frozen=True):
    """The bytes of large files: by repo id, and in total for the repos that the caller may see."""

    by_repo: Mapping[str, int]
    total: int

    def of(self, repo: Repo) -> int:
        return self.by_repo.get(repo.id, 0)

    def percent_of(self, repo: Repo) -> float:
        return round(100 * self.of(repo) / self.total, 2) if self.total else 0.0


async def storage_usage(repos: Repos, identity: Identity, owner_id: str, shown: Sequence[Repo]) -> StorageUsage:
    async def read(tx: Tx) -> StorageUsage:
        sizes = await lfs_store.used_storage_of(tx, [repo.id for repo in shown])
        return StorageUsage(sizes, await store.used_storage(tx, owner_id, visible_repos(identity)))

    return await repos.db.read_long(read)


async def count_repos(repos: Repos, identity: Identity, owner_id: str) -> RepoCounts:
    visible = visible_repos(identity)
    found = await repos.db.read_long(lambda tx: store.counts(tx, owner_id, visible))
    return RepoCounts(*(found.get(kind.value, 0) for kind in RepoType))


def _page_size(rows: Sequence[Repo], limit: int) -> int:
    """The number of repos on the page, at least one: a card may have 64 KiB, and all are encoded at once."""
    size = 0
    for shown, repo in enumerate(rows[:limit], 1):
        size += len(repo.card) + len(repo.tags)
        if size > MAX_PAGE_CHARACTERS:
            return shown
    return limit


def _sort_value(repo: Repo, sort: str) -> int:
    return repo.created_at if sort == "createdAt" else repo.updated_at
