"""A hub with many repos whose names and cards are made of words, some common and most rare, as in a language."""

import random
from collections.abc import Iterator, Sequence
from itertools import accumulate

from bench.repo_hubs import RepoHub
from hubgate.server.accounts import search_documents as account_documents
from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.model import User
from hubgate.server.hub.repos import search_documents as repo_documents
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import Card, Repo
from hubgate.server.resources import Hub
from hubgate.server.search import store as search_store
from hubgate.server.search.words import text_tokens
from hubgate.server.settings import load
from hubgate.server.startup import opened_for_operator
from hubgate.server.storage.database import Tx

REPOS_PER_OWNER = 50
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
    """Store users and repos with their documents, directly; return some full names."""
    names = []
    async with opened_for_operator(load(dict(hub.settings), environment={}, config=None)) as opened:
        users = [_user(number, language) for number in range(repos // REPOS_PER_OWNER)]
        await _add_users(opened, users)
        for start in range(0, repos, _PER_UNIT):
            batch = list(_repos(range(start, min(start + _PER_UNIT, repos)), users, language))
            await _add_repos(opened, batch)
            names.append(batch[0][0].full_name)
    return names


def _user(number: int, language: Language) -> User:
    name = f"{'-'.join(language.some(1, 2))}-{number}"[-42:].lstrip("-")
    address = f"user{number}@example.org"
    return User(f"{number:024x}", name, " ".join(language.some(2, 3)).title(), address, 1, "", 0, 0, number, None)


async def _add_users(opened: Hub, users: Sequence[User]) -> None:
    async def unit(tx: Tx) -> None:
        for user in users:
            await account_store.claim_name(tx, user.name, "user", user.id, 1)
            await account_store.add_user(tx, user, None)
            await search_store.put(tx, account_documents.document_of(user))

    await opened.db.write_long(unit)


def _repos(numbers: range, users: Sequence[User], language: Language) -> Iterator[tuple[Repo, Card]]:
    for number in numbers:
        owner = users[number % len(users)]
        tags = [tag for tag in _TAGS if language.chance(0.05)]
        words = text_tokens(" ".join(language.some(*CARD_WORDS)))
        card = Card({}, tags, words)
        repo = Repo(
            id=f"{1_000_000 + number:024x}",
            type=("model", "model", "dataset", "space")[number % 4],
            owner_kind="user",
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


async def _add_repos(opened: Hub, batch: Sequence[tuple[Repo, Card]]) -> None:
    async def unit(tx: Tx) -> None:
        for repo, card in batch:
            await repo_store.add(tx, repo)
            await search_store.put(tx, repo_documents.document_of(repo, card))

    await opened.db.write_long(unit)
