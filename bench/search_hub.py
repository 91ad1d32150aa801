"""A hub with many repos whose names and cards are made of words, some common and most rare, as in a language."""

import random
from collections.abc import Iterator, Sequence
from itertools import accumulate

from bench.repo_hubs import USER, RepoHub
from hubgate.server.accounts import search_documents as account_documents
from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.accounts.roles import Role
from hubgate.server.hub.discussions import store as discussion_store
from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.repos import search_documents as repo_documents
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import Card, Repo
from hubgate.server.hub.search.compaction import Compaction
from hubgate.server.resources import Hub
from hubgate.server.search import store as search_store
from hubgate.server.search.words import text_tokens
from hubgate.server.settings import load
from hubgate.server.startup import opened_for_operator
from hubgate.server.storage.database import Tx

REPOS_PER_OWNER = 50
# Of the owners: organizations, and those of them that the user who searches is a member of.
ORGANIZATIONS_SHARE, MEMBER_SHARE = 0.2, 0.5
# Every fifth repo has a discussion.
REPOS_PER_DISCUSSION = 5
PRIVATE_SHARE = 0.3
CARD_WORDS = (40, 160)
VOCABULARY = 20_000
_PER_UNIT = 500
_TAGS = [f"license:{name}" for name in ("mit", "apache-2.0", "bsd", "gpl")] + [f"task-{n}" for n in range(40)]


class Language:
    """Words of which the n-th is used n times less often than the first (Zipf's law)."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self.words = ["".join(self._random.choices(letters, k=self._random.randint(3, 10))) for _ in range(VOCABULARY)]
        self._weights = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))

    def some(self, least: int, most: int) -> list[str]:
        return self._random.choices(self.words, cum_weights=self._weights, k=self._random.randint(least, most))

    def chance(self, share: float) -> bool:
        return self._random.random() < share


async def fill(hub: RepoHub, language: Language, repos: int) -> list[str]:
    """Store accounts, repos and discussions with their documents, directly; return some full names."""
    names = []
    async with opened_for_operator(load(dict(hub.settings), environment={}, config=None)) as opened:
        owners = [_account(number, language) for number in range(repos // REPOS_PER_OWNER)]
        await _add_accounts(opened, owners, language)
        for start in range(0, repos, _PER_UNIT):
            batch = list(_repos(range(start, min(start + _PER_UNIT, repos)), owners, language))
            await _add_repos(opened, batch, language)
            names.append(batch[0][0].full_name)
        # As the background process does.
        compaction = Compaction(opened.db)
        while await compaction.step():
            pass
    return names


def _account(number: int, language: Language) -> User | Organization:
    id_, name = f"{number:024x}", f"{'-'.join(language.some(1, 2))}-{number}"[-42:].lstrip("-")
    fullname = " ".join(language.some(2, 3)).title()
    if language.chance(ORGANIZATIONS_SHARE):
        return Organization(id_, name, fullname, "", "team", 0, number)
    return User(id_, name, fullname, f"user{number}@example.org", 1, "", 0, 0, number, None)


async def _add_accounts(opened: Hub, accounts: Sequence[User | Organization], language: Language) -> None:
    async def unit(tx: Tx) -> None:
        member = await account_store.user_by_name(tx, USER)
        for account in accounts:
            kind = "user" if isinstance(account, User) else "org"
            await account_store.claim_name(tx, account.name, kind, account.id, 1)
            if isinstance(account, User):
                await account_store.add_user(tx, account, None)
            else:
                await org_store.add(tx, account)
                if member is not None and language.chance(MEMBER_SHARE):
                    await org_store.add_member(tx, account.id, member.id, Role.READ, 1)
            await search_store.put(tx, account_documents.document_of(account))

    await opened.db.write_long(unit)


def _repos(numbers: range, owners: Sequence[User | Organization], language: Language) -> Iterator[tuple[Repo, Card]]:
    for number in numbers:
        owner = owners[number % len(owners)]
        tags = [tag for tag in _TAGS if language.chance(0.05)]
        words = text_tokens(" ".join(language.some(*CARD_WORDS)))
        card = Card({}, tags, words)
        repo = Repo(
            id=f"{1_000_000 + number:024x}",
            type=("model", "model", "dataset", "space")[number % 4],
            owner_kind="user" if isinstance(owner, User) else "org",
            owner_id=owner.id,
            owner_name=owner.name,
            name=f"{'-'.join(language.some(1, 4))[:80]}-{number}",
            private=int(language.chance(PRIVATE_SHARE)),
            gated="",
            discussions_disabled=0,
            sdk="",
            creator_id=owner.id,
            creator_client=None,
            head_sha=None,
            card=card.data_json,
            tags=card.tags_json,
            created_at=number,
            updated_at=(number * 7919) % 1_000_003,
            generation=1,
            last_seq=1,
        )
        yield repo, card


async def _add_repos(opened: Hub, batch: Sequence[tuple[Repo, Card]], language: Language) -> None:
    titles = [" ".join(language.some(2, 8)) for _ in batch]

    async def unit(tx: Tx) -> None:
        for number, (repo, card) in enumerate(batch):
            await repo_store.add(tx, repo)
            await search_store.put(tx, repo_documents.document_of(repo, card))
            if number % REPOS_PER_DISCUSSION == 0:
                discussion = Discussion(f"d{repo.id[1:]}", repo.id, 1, titles[number], "open", None, repo.creator_id, 1)
                await discussion_store.add(tx, discussion)
                await search_store.put(tx, repo_documents.document_of_discussion(repo, discussion.id, titles[number]))

    await opened.db.write_long(unit)
