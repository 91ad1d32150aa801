"""Commits of a small file per second: over HTTP, by libgit2 and by git programs on the same disk, all with fsync."""

import base64
import itertools
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tests.bed.repos import create_repo

from bench import local_commits
from bench.harness import Table, run_interleaved, table, warm_up
from bench.http_requests import BARE, Contestant, bare_process, medians, response_to
from bench.load import ONCE, Request
from bench.local_commits import LIBRARY, PROGRAMS
from bench.repo_hubs import USER, RepoHub
from bench.workspace import Workspace

TURN = 2.0
CLIENTS = 8
REPOS = 16
# More requests than can be processed; a turn that runs out of requests ends early.
COMMITS_PER_SECOND = 700
# The size of the file that each commit changes, before base64.
BYTES = 1024

Turn = dict[str, float]
_HEADER = json.dumps({"key": "header", "value": {"summary": "A change"}})


def measure(workspace: Workspace, hubs: Mapping[str, RepoHub]) -> list[Table]:
    for hub in hubs.values():
        with hub.client() as client:
            for name in _names(REPOS):
                create_repo(client, name)
    sample = _requests(next(iter(hubs.values())), 1, 2)
    with bare_process({sample[0].path: response_to(next(iter(hubs.values())).server, sample[0])}) as bare:
        found = []
        for clients, repos in ((1, 1), (CLIENTS, REPOS)):
            folder = workspace.subfolder(f"commits-{clients}")
            seconds = workspace.budget.seconds(TURN)
            max_commits = max(int(COMMITS_PER_SECOND * seconds), 20)
            contestants: dict[str, Callable[[], Turn]] = {
                LIBRARY: partial(local_commits.by_library, folder / "library", clients, repos, seconds),
                PROGRAMS: partial(local_commits.by_programs, folder / "programs", clients, repos, seconds),
            }
            bare_contestant = Contestant(bare, partial(list, sample[1:]), connections=clients)
            contestants[BARE] = partial(bare_contestant.load, seconds)
            for name, hub in hubs.items():
                hub_contestant = Contestant(hub.server, partial(_requests, hub, repos, max_commits), ONCE, clients)
                contestants[name] = partial(hub_contestant.load, seconds)
            found.append(_table(workspace, clients, repos, contestants))
    return found


def _table(workspace: Workspace, clients: int, repos: int, contestants: Mapping[str, Callable[[], Turn]]) -> Table:
    turns = run_interleaved(warm_up(contestants), workspace.budget.rounds)
    rates = {name: [turn["rate"] for turn in taken] for name, taken in turns.items()}
    more = {name: medians(taken) for name, taken in turns.items()}
    title = f"Commits, {clients} client{'s' if clients > 1 else ''}, {repos} repo{'s' if repos > 1 else ''}"
    return table(title, "commits/s", LIBRARY, rates, more)


def _names(count: int) -> list[str]:
    return [f"commits-{number}" for number in range(count)]


def _requests(hub: RepoHub, repos: int, count: int) -> Sequence[Request]:
    """Commits that change the same file of a repo to new content each time."""
    headers = {**hub.authorization, "Content-Type": "application/x-ndjson"}
    turns = itertools.islice(itertools.cycle(_names(repos)), count)
    return [Request("POST", f"/api/models/{USER}/{name}/commit/main", headers, _body()) for name in turns]


def _body() -> str:
    text = base64.b64encode(secrets.token_bytes(BYTES)).decode()
    file = {"key": "file", "value": {"content": text, "path": "notes.txt", "encoding": "base64"}}
    return f"{_HEADER}\n{json.dumps(file)}\n"
