"""Lists select visible repos and collections in the database; the result equals the policy's decision, for every
caller and every repo or collection.
"""

from itertools import count, product

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.access.test_properties import CLIENTS, ORGS, USERS, callers
from tests.bed.running_hub import RunningHub

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.access.visibility import VisibleCollections, visible_collections, visible_repos
from hubgate.server.hub.collections import store as collection_store
from hubgate.server.hub.collections.store import CollectionFilter
from hubgate.server.hub.listing import store as listing
from hubgate.server.hub.listing.store import RepoFilter
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import Card, Repo
from hubgate.server.hub.repos.search_documents import document_of
from hubgate.server.hub.search.queries import any_of, visible_documents
from hubgate.server.resources import Hub
from hubgate.server.search.store import put
from hubgate.server.search.words import kind_token
from hubgate.server.storage.database import Tx
from hubgate.server.storage.text_query import TextQuery

OWNERS = [*(("user", user) for user in USERS), *(("org", org) for org in ORGS)]


def every_repo() -> list[Repo]:
    """For each owner: open, gated and private, created by each person, through each app and through none."""
    numbers = count()
    made = product(OWNERS, (0, 1), ("", "manual"), USERS, (None, *CLIENTS))
    return [
        Repo(
            id=f"{number:024x}",
            type="model",
            owner_kind=kind,
            owner_id=owner,
            owner_name=owner,
            name=f"r{number}",
            private=private,
            gated=gated,
            discussions_disabled=0,
            sdk="",
            creator_id=creator,
            creator_client=client,
            head_sha=None,
            card="{}",
            tags="[]",
            created_at=number,
            updated_at=number,
            generation=1,
            last_seq=1,
        )
        for number, ((kind, owner), private, gated, creator, client) in zip(numbers, made, strict=False)
    ]


def test_list_shows_exactly_what_the_policy_makes_visible(hub: RunningHub) -> None:
    repos = every_repo()

    async def fill(tx: Tx) -> None:
        for repo in repos:
            await store.add(tx, repo)
            await put(tx, document_of(repo, Card({}, [])))

    hub.call(lambda opened: opened.db.write_long(fill))

    @given(identity=callers, owner=st.sampled_from(["", *USERS, *ORGS]))
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    def holds(identity: Identity, owner: str) -> None:
        sight = visible_repos(identity)
        wanted = RepoFilter(type="model", owner_id=owner)

        async def listed(tx: Tx) -> set[str]:
            return {repo.id for repo in await listing.page(tx, wanted, sight, None, 1000)}

        async def work(opened: Hub) -> set[str]:
            return await opened.db.read_long(listed)

        expected = {
            repo.id
            for repo in repos
            if owner in ("", repo.owner_id) and decide(identity, Action.REPO_SEE, repo.as_resource()).allowed
        }
        assert hub.call(work) == expected

        # The search index knows it too, so that a page of results is full. It does not know who left an organization.
        async def indexed(opened: Hub) -> set[str]:
            query, index = (
                TextQuery("repo", (any_of([kind_token("model")]),), access=visible_documents(sight)),
                opened.db.text_index,
            )
            found = await opened.db.read_long(lambda tx: index.newest(tx, query, None, 1000))
            return {target for _, target in found}

        if not owner:
            assert expected <= hub.call(indexed) <= expected | set(sight.repos)

    holds()


def test_list_shows_exactly_the_collections_that_the_policy_makes_visible(hub: RunningHub) -> None:
    async def fill(tx: Tx) -> None:
        for number, ((kind, owner), private) in enumerate(product(OWNERS, (0, 1))):
            texts = dict.fromkeys(("title", "title_key", "description", "search_text"), str(number))
            await collection_store.add(
                tx,
                {
                    "id": f"{number:024x}",
                    "owner_kind": kind,
                    "owner_id": owner,
                    **texts,
                    "theme": "blue",
                    "private": private,
                    "position": number,
                    "created_at": number,
                    "updated_at": number,
                },
            )

    hub.call(lambda opened: opened.db.write_long(fill))

    @given(identity=callers)
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    def holds(identity: Identity) -> None:
        async def listed(tx: Tx) -> tuple[set[str], set[str]]:
            seen = visible_collections(identity)
            everything = VisibleCollections((*USERS, *ORGS))
            every = await collection_store.page(tx, CollectionFilter(), everything, None, 1000)
            found = await collection_store.page(tx, CollectionFilter(), seen, None, 1000)
            allowed = {
                each.id for each in every if decide(identity, Action.COLLECTION_READ, each.as_resource()).allowed
            }
            return {each.id for each in found}, allowed

        async def work(opened: Hub) -> tuple[set[str], set[str]]:
            return await opened.db.read_long(listed)

        found, allowed = hub.call(work)
        assert found == allowed

    holds()
