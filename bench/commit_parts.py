"""The parts of a commit over HTTP, each measured alone in a single process, in the order of a commit."""

import asyncio
import itertools
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pygit2
from pygit2.enums import FileMode

from bench.harness import Table, table
from bench.repo_hubs import USER, RepoHub
from bench.workspace import Workspace
from hubgate.server.access.caller import Caller
from hubgate.server.access.identity import Identity
from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.model import Person
from hubgate.server.audit.model import SYSTEM
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.commits.attribute_files import attributes_after
from hubgate.server.hub.commits.commit import commit
from hubgate.server.hub.commits.model import AddFile, CommitRequest, Content
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.objects import configure_libgit2, repository, tree_of
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.git.writes import Author, NewCommit, PutContent, write_commit
from hubgate.server.hub.repos import creation, store
from hubgate.server.hub.repos.card import card_at
from hubgate.server.hub.repos.model import MAIN, NO_CARD, Repo, RepoOwner, RepoType
from hubgate.server.hub.repos.refs import move_refs_in
from hubgate.server.resources import Hub
from hubgate.server.settings import load
from hubgate.server.startup import opened_for_operator

TURN = 0.4
WHOLE = "the whole commit"

Step = Callable[[], Awaitable[object]]


def measure(workspace: Workspace, hubs: Mapping[str, RepoHub]) -> list[Table]:
    # Other contestants in this process changed libgit2's fsync option.
    configure_libgit2()
    return [asyncio.run(_measure_hub(workspace, name, hub)) for name, hub in hubs.items()]


async def _measure_hub(workspace: Workspace, name: str, hub: RepoHub) -> Table:
    async with opened_for_operator(load(hub.settings, environment={})) as opened:
        steps = _steps(await _set_up(opened))
        samples: dict[str, list[float]] = {step: [] for step in steps}
        for _ in range(workspace.budget.rounds + 1):
            for step, work in steps.items():
                samples[step].append(await _microseconds(work, workspace.budget.seconds(TURN)))
    # The first round is a warm-up: it opens connections and prepares statements.
    counted = {step: figures[1:] for step, figures in samples.items()}
    return table(f"Parts of a commit, {name.rpartition(' ')[2]}", "µs", WHOLE, counted)


@dataclass(frozen=True)
class _Setup:
    repos: Repos
    repo: Repo
    caller: Caller
    # Two commits between which the ref alternates.
    shas: tuple[str, str]


async def _set_up(hub: Hub) -> _Setup:
    user = await account_store.user_by_name(hub.db, USER)
    assert user is not None
    new_repo = creation.NewRepo(RepoType.MODEL, f"parts-{secrets.token_hex(4)}", license="mit")
    repo = await creation.create(hub.repos, user, RepoOwner("user", user.id, user.name), new_repo, SYSTEM)
    first = repo.head_sha
    assert first is not None
    folder = hub.repos.folders.of(repo.id)
    second = await write_commit(folder, NewCommit(first, [], "Another", Author("ada", "ada"), hub.clock()))
    caller = Caller(Identity.session(user.id, {}), Person(user, (), {}))
    return _Setup(hub.repos, repo, caller, (first, second))


def _steps(setup: _Setup) -> dict[str, Step]:
    repos, repo = setup.repos, setup.repo
    folder, (first, _) = repos.folders.of(repo.id), setup.shas
    author, moves = Author("ada", "ada@example.org"), itertools.cycle((setup.shas, setup.shas[::-1]))

    def operation() -> AddFile:
        content = secrets.token_bytes(1024)
        return AddFile("notes.txt", Content(len(content), content))

    async def whole() -> None:
        await commit(repos, repo, setup.caller, "refs/heads/parts", CommitRequest("A change", operations=[operation()]))

    async def objects() -> None:
        put = PutContent("notes.txt", secrets.token_bytes(1024))
        await write_commit(folder, NewCommit(first, [put], "A change", author, repos.clock()))

    async def unit() -> None:
        old, new = next(moves)
        change, now = RefChange(MAIN, old, new), repos.clock()
        await repos.db.write(lambda tx: move_refs_in(tx, repos, repo, [change], NO_CARD, now, {}, 1))

    async def one_statement() -> None:
        await repos.db.write(lambda tx: store.lock(tx, repo.id))

    return {
        WHOLE: _after_setup(lambda: _create_branch(setup), whole),
        "  .gitattributes read": lambda: attributes_after(folder, first, [operation()]),
        "  blob, tree and commit": objects,
        "  the same, not synced": lambda: in_thread(_write_unsynced, folder, first),
        "  README.md read": lambda: card_at(folder, first, "model"),
        "  unit: ref, head and event": unit,
        "  unit of one statement": one_statement,
        "  a look-up of a ref": lambda: store.ref(repos.db, repo.id, MAIN),
    }


def _after_setup(set_up: Step, step: Step) -> Step:
    """A step that runs `set_up` before its first run."""
    done = False

    async def work() -> None:
        nonlocal done
        if not done:
            done = True
            await set_up()
        await step()

    return work


async def _create_branch(setup: _Setup) -> None:
    change, now = RefChange("refs/heads/parts", None, setup.shas[0]), setup.repos.clock()
    await setup.repos.db.write(lambda tx: move_refs_in(tx, setup.repos, setup.repo, [change], None, now, {}))


def _write_unsynced(folder: Path, parent: str) -> None:
    repo = repository(folder)
    builder = repo.TreeBuilder(tree_of(repo, parent))
    builder.insert("notes.txt", repo.create_blob(secrets.token_bytes(1024)), FileMode.BLOB)
    author = pygit2.Signature("ada", "ada@example.org", 0, 0)
    repo.create_commit(None, author, author, "A change", builder.write(), [parent])


async def _microseconds(work: Step, seconds: float) -> float:
    done, started = 0, time.perf_counter()
    while done < 3 or time.perf_counter() < started + seconds:
        await work()
        done += 1
    return 1e6 * (time.perf_counter() - started) / done
