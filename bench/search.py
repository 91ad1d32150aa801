"""Searches among 100,000 repos: p99 of the search page, of the API, and of lists that existing clients filter."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from statistics import median
from urllib.parse import urlencode

from tests.bed.engines import run_sql

from bench.harness import Table, run_interleaved, table, warm_up
from bench.http_requests import Contestant
from bench.load import Request
from bench.repo_hubs import POSTGRES, SQLITE, repo_hub_process
from bench.search_hub import Language, fill
from bench.workspace import Workspace

REPOS = 100_000
TURN = 4.0
# Ranks of the words that are searched: the most common, which nearly every card has, to the rarest.
RANKS = (0, 1, 2, 5, 10, 20, 50, 100, 300, 1_000, 3_000, 10_000, 19_999)

Turn = dict[str, float]


def measure(workspace: Workspace) -> list[Table]:
    repos = max(int(workspace.budget.scale * REPOS), 1_000)
    language = Language()
    with contextlib.ExitStack() as stack:
        turns: dict[str, Callable[[], Turn]] = {}
        for engine in (SQLITE, POSTGRES):
            hub = stack.enter_context(repo_hub_process(workspace, engine, "search"))
            names = asyncio.run(fill(hub, language, repos))
            if engine == POSTGRES:
                asyncio.run(run_sql(hub.settings["database_url"], "VACUUM ANALYZE"))
            for what, paths in _paths(_texts(language, names)):
                headers = hub.authorization
                load = Contestant(hub.server, partial(_requests, paths, headers), connections=1)
                turns[f"{engine.rpartition(' ')[2]}, {what}"] = partial(load.load, workspace.budget.seconds(TURN))
        samples = run_interleaved(warm_up(turns), workspace.budget.rounds)
    # In microseconds: tables have no decimals.
    figures = {name: [1000 * turn["p99 ms"] for turn in taken] for name, taken in samples.items()}
    more = {
        name: {column: median(turn[column] for turn in taken) for column in ("p50 ms", "p99 ms", "CPU µs")}
        for name, taken in samples.items()
    }
    return [table(f"Search among {repos:,} repos, one connection", "p99 µs", next(iter(figures)), figures, more)]


def _texts(language: Language, names: Sequence[str]) -> list[str]:
    """What people type: a word, a part of a word, two words, and `owner/name`."""
    words = [language.words[rank] for rank in RANKS]
    pairs = [f"{one} {other}" for one, other in pairwise(words)]
    return [*words, *(word[:-1] for word in words if len(word) > 4), *pairs, *names[:8], "nothing-has-this-name"]


def _paths(texts: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    yield "search page", [f"/search?{urlencode({'q': text})}" for text in texts]
    yield "page of repos only", [f"/search?{urlencode({'q': text, 'type': 'repos'})}" for text in texts]
    yield "GET /api/quicksearch", [f"/api/quicksearch?{urlencode({'q': text})}" for text in texts]
    lists = [{"search": text, "limit": 20} for text in texts]
    lists += [{"search": text, "limit": 20, "sort": "createdAt", "filter": "license:mit"} for text in texts[::3]]
    yield "GET /api/models?search=", [f"/api/models?{urlencode(query)}" for query in lists]


def _requests(paths: Sequence[str], headers: dict[str, str]) -> list[Request]:
    return [Request("GET", path, headers) for path in paths]
