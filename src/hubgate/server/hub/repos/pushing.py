"""A push: its objects are unpacked aside and looked at, they land in the repo, then its refs move with their event.

Whatever is refused before the last step leaves nothing behind. Objects that landed for refs that did not move are
harmless: nothing points at them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence

from hubgate.server import failpoint
from hubgate.server.access.identity import Identity
from hubgate.server.errors import Forbidden, NotFound, Unavailable, Unprocessable
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import history, inspecting, program, receiving
from hubgate.server.hub.git.inspecting import MOST_COMMITS, Findings
from hubgate.server.hub.git.objects import Pointer
from hubgate.server.hub.git.paths import DEEPEST
from hubgate.server.hub.git.quarantine import Quarantine, quarantine
from hubgate.server.hub.git.receiving import Asked, Outcome
from hubgate.server.hub.git.unpacking import CannotUnpack, unpack
from hubgate.server.hub.git.weighing import MOST_FILES
from hubgate.server.hub.guests.charging import Charge, add_git, charge_of, use_files
from hubgate.server.hub.guests.marked_commits import mark
from hubgate.server.hub.guests.sweep import pointer_sha
from hubgate.server.hub.lfs import store as lfs_store
from hubgate.server.hub.repos import copied_refs, push_rights, store
from hubgate.server.hub.repos.model import REPO_GONE, Repo, is_pull_request
from hubgate.server.hub.repos.refs import Moves, RefIsElsewhere, move_refs
from hubgate.server.jobs.caller import caller_of_context

# Larger files are git lfs's business, unless the operator lets larger ones come in a commit.
LARGEST_FILE = 100 * 1024 * 1024
MOST_NAMED = 5
ONE_AT_A_TIME = "Users who may not write to this repo push to one pull request at a time."
# A client that has more to say than this to a refused push finds the connection closed.
MOST_DRAINED = 256 * 1024 * 1024

# Who pushes, read anew.
AskAgain = Callable[[], Awaitable[Identity]]


async def advertisement(repos: Repos, repo: Repo) -> bytes:
    return receiving.advertisement(await repos.db.read_long(lambda tx: store.refs(tx, repo.id)))


async def push(
    repos: Repos, repo: Repo, identity: Identity, asked: Asked, pack: AsyncIterator[bytes], again: AskAgain
) -> Outcome:
    """What became of each ref. The pack is read to its end even if nothing of it is wanted."""
    if asked.too_many:
        await _drained(pack)
        raise Unprocessable(f"A push changes at most {receiving.MOST_COMMANDS:,} refs. Push them in parts.")
    refused = await push_rights.refusals(repos, identity, repo, asked.changes)
    wanted = _standing(asked, refused)
    if all(change.new_sha is None for change in wanted):
        await _drained(pack)
        return await _moved(repos, repo, asked, refused, again)
    folder = await copied_refs.refresh(repos, repo.id)
    to_pull_request = any(is_pull_request(change.ref) for change in wanted)
    charge = await charge_of(repos, repo, identity.user_id) if to_pull_request else None
    async with quarantine(repos.folders.root, folder) as held:
        try:
            await unpack(held, pack)
        except CannotUnpack as problem:
            await _drained(pack)
            return Outcome(_for_all(asked, "unpacker error"), problem.reason, problem.flaws)
        most, largest, named = repos.limits.pushed_objects, _largest_file(repos), set[str]()
        findings = await inspecting.inspect(
            held, most, largest, lambda found: _faults(repos, repo, found, charge, named)
        )
        objection = await _objection(repos, held, findings, asked, wanted)
        if objection is not None:
            return objection
        if charge is not None and len(wanted) > 1:
            # A charge ends with the merge of its pull request: all that is charged has to be in that one.
            return Outcome(_for_all(asked, "refused, see above"), remarks=[ONE_AT_A_TIME])
        if findings.objects and to_pull_request:
            try:
                await _prepare(repos, repo, held, findings, charge, named, wanted)
            except Forbidden as problem:
                return Outcome(_for_all(asked, "refused, see above"), remarks=[problem.message])
        if findings.objects:
            await held.land()
    failpoint.hit("push-objects-landed")
    return await _moved(repos, repo, asked, refused, again, charge)


async def _prepare(
    repos: Repos,
    repo: Repo,
    held: Quarantine,
    findings: Findings,
    charge: Charge | None,
    files: Collection[str],
    wanted: Sequence[RefChange],
) -> None:
    """What a push to a pull request needs before its objects land: they stay even if its ref cannot move (O72)."""
    if charge is not None:
        if len(findings.commits) > MOST_COMMITS:
            raise Forbidden(f"Users who may not write to this repo push at most {MOST_COMMITS:,} commits at once.")
        if await inspecting.leads_to_less(held, [change.new_sha for change in wanted if change.new_sha is not None]):
            raise Forbidden("The push brings objects that are not part of the pull request.")
        await use_files(repos, repo, charge, files)
        await add_git(repos, repo, charge, await held.size())
    if len(findings.commits) <= MOST_COMMITS:
        await mark(repos, repo, await held.without_known(findings.commits))


def _largest_file(repos: Repos) -> int:
    return max(LARGEST_FILE, repos.regular_upload_max)


def _standing(asked: Asked, refused: Mapping[str, str]) -> list[RefChange]:
    """What is still to be done. Deletions first: a ref may stand in another's way."""
    if refused and "atomic" in asked.wants:
        return []
    changes = [change for change in asked.changes if change.ref not in refused and not _deletes_nothing(change)]
    return sorted(changes, key=lambda change: change.new_sha is not None)


def _deletes_nothing(change: RefChange) -> bool:
    return change.old_sha is None and change.new_sha is None


def _all_or_none(asked: Asked, refused: Mapping[str, str]) -> dict[str, str]:
    return {**_for_all(asked, "atomic push failed"), **refused} if "atomic" in asked.wants and refused else {**refused}


def _for_all(asked: Asked, reason: str) -> dict[str, str]:
    return {change.ref: reason for change in asked.changes}


async def _objection(
    repos: Repos, held: Quarantine, findings: Findings, asked: Asked, wanted: Sequence[RefChange]
) -> Outcome | None:
    """The files first: what is asked after them walks the trees."""
    if findings.too_many:
        most = repos.limits.pushed_objects
        return Outcome(_for_all(asked, f"a push has at most {most:,} objects, push it in parts"))
    tips = [change.new_sha for change in wanted if change.new_sha is not None]
    remarks = await _remarks(repos, held, findings, tips)
    if remarks:
        return Outcome(_for_all(asked, "refused, see above"), remarks=remarks)
    if not await inspecting.connected(held, tips):
        reason = "shallow update not allowed" if asked.shallow else "missing necessary objects"
        return Outcome(_for_all(asked, reason))
    types = await inspecting.types_of(held, tips)
    no_commits = {
        change.ref: "a branch points to a commit"
        for change in wanted
        if change.new_sha and not change.ref.startswith("refs/tags/") and types.get(change.new_sha) != "commit"
    }
    return Outcome({**_for_all(asked, "refused with the others"), **no_commits}) if no_commits else None


async def _remarks(repos: Repos, held: Quarantine, findings: Findings, tips: Sequence[str]) -> list[str]:
    """What stands against the files, each by its path."""
    at_fault = [*findings.too_large, *findings.bad_pointers, *findings.too_much, *findings.bad_names]
    if not at_fault:
        return []
    named = at_fault[:MOST_NAMED]
    paths = await inspecting.paths_of(held, tips, set(named))
    remarks = [f"{_printable(paths.get(sha, sha))} {_fault(repos, findings, sha)}" for sha in named]
    return [*remarks, f"and {len(at_fault) - MOST_NAMED} more"] if len(at_fault) > MOST_NAMED else remarks


def _fault(repos: Repos, findings: Findings, sha: str) -> str:
    if sha in findings.too_large:
        return (
            f"has {findings.too_large[sha]:,} bytes. Files over {_largest_file(repos):,} bytes go through git lfs: "
            "git lfs migrate import --include=..."
        )
    if sha in findings.too_much:
        return f"goes deeper than {DEEPEST} folders, or holds more than {MOST_FILES:,} files."
    return findings.bad_pointers.get(sha) or findings.bad_names[sha]


async def _faults(
    repos: Repos, repo: Repo, pointers: Mapping[str, Pointer], charge: Charge | None, named: set[str]
) -> dict[str, str]:
    """What is wrong with pointers, by blob. Large files that a guest's push names are collected in `named`; those of a
    writer's are the owner's at once.
    """
    faults = await _never_sent(repos, repo, pointers)
    fine = {pointer.oid for sha, pointer in pointers.items() if sha not in faults}
    if charge is None:
        await use_files(repos, repo, None, fine)
        return faults
    named |= fine
    unusual = {sha for sha, pointer in pointers.items() if sha != pointer_sha(pointer.oid, pointer.size)}
    return {**dict.fromkeys(unusual, "is not written as git lfs writes it: git lfs migrate import"), **faults}


async def _never_sent(repos: Repos, repo: Repo, pointers: Mapping[str, Pointer]) -> dict[str, str]:
    """Knowing a hash must not be enough to have somebody's file."""
    wanted = list({pointer.oid for pointer in pointers.values()})
    sizes = await repos.db.read_long(lambda tx: lfs_store.sizes_of(tx, repo.id, wanted))
    faults: dict[str, str] = {}
    for sha, pointer in pointers.items():
        size = sizes.get(pointer.oid)
        if size is None:
            faults[sha] = f"stands for the large file {pointer.oid}, which this repo was never sent: git lfs push --all"
        elif size != pointer.size:
            faults[sha] = f"says that {pointer.oid} has {pointer.size:,} bytes, but it has {size:,}."
    return faults


def _printable(path: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in path)


async def _moved(
    repos: Repos,
    repo: Repo,
    asked: Asked,
    refused: Mapping[str, str],
    again: AskAgain,
    charge: Charge | None = None,
) -> Outcome:
    """Judged once more: a role may be lost, a token revoked, a pull request closed, the repo gone by now."""
    identity, present = await again(), await store.by_id(repos.db, repo.id)
    if present is None:
        return Outcome(_for_all(asked, REPO_GONE))
    refused = {**await push_rights.refusals(repos, identity, present, asked.changes), **refused}
    refused = {**await _there_after_all(repos, present, asked), **refused}
    wanted = _standing(asked, refused)
    absent = [f"{change.ref} was not there" for change in asked.changes if _deletes_nothing(change)]
    if not wanted:
        return Outcome(_all_or_none(asked, refused), remarks=[] if refused else absent[:MOST_NAMED])
    if charge is not None:
        charge.rewinds = not await _all_go_on(repos, repo, wanted)
    try:
        moves = await move_refs(repos, present, wanted, together="atomic" in asked.wants, charge=charge)
    except RefIsElsewhere as problem:
        moves = Moves((), problem.stale)
    except NotFound:
        return Outcome(_for_all(asked, REPO_GONE))
    failpoint.hit("push-before-report")
    refused |= {change.ref: "fetch first" for change in moves.stale}
    friendly = moves.moved and "quiet" not in asked.wants
    remarks = [f"{repos.base_url}{_page(present, moves.moved)}"] if friendly else []
    return Outcome(_all_or_none(asked, refused), remarks=remarks)


async def _all_go_on(repos: Repos, repo: Repo, wanted: Sequence[RefChange]) -> bool:
    """Whether each new commit leads to the old one."""
    folder = repos.folders.of(repo.id)
    try:
        async with repos.walks.taken(caller_of_context.get().share, repo.id):
            return all([await history.leads_to(folder, change.new_sha, change.old_sha) for change in wanted])
    except (Unavailable, program.GitFailed):
        # Not known in time: the bytes stay charged.
        return False


async def _there_after_all(repos: Repos, repo: Repo, asked: Asked) -> dict[str, str]:
    absent = {change.ref for change in asked.changes if _deletes_nothing(change)}
    if not absent:
        return {}
    names = {name for name, _ in await repos.db.read_long(lambda tx: store.refs(tx, repo.id))}
    return dict.fromkeys(absent & names, "fetch first")


def _page(repo: Repo, moved: Sequence[RefChange]) -> str:
    pull_request = moved[0].ref.removeprefix("refs/pr/") if moved[0].ref.startswith("refs/pr/") else None
    return f"{repo.path}/discussions/{pull_request}" if pull_request else repo.path


async def _drained(pack: AsyncIterator[bytes]) -> None:
    """A client reads the answer only once it has sent everything."""
    count = 0
    async for part in pack:
        count += len(part)
        if count > MOST_DRAINED:
            return
