"""A push: objects are unpacked into a quarantine, inspected and moved into the repo, then the refs move with their
event.

A push that is rejected before its objects land leaves nothing behind. Objects that landed for refs that did not move
are harmless: nothing points at them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence

from hubgate.server import failpoint
from hubgate.server.access.identity import Identity
from hubgate.server.errors import Forbidden, NotFound, Unavailable, Unprocessable
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import history, inspection, program, receive_pack
from hubgate.server.hub.git.inspection import MAX_COMMITS, MAX_MESSAGE_OBJECT_BYTES, Findings
from hubgate.server.hub.git.objects import Pointer
from hubgate.server.hub.git.paths import MAX_FOLDER_DEPTH
from hubgate.server.hub.git.quarantine import Quarantine, quarantine
from hubgate.server.hub.git.receive_pack import PushOutcome, PushRequest
from hubgate.server.hub.git.tree_limits import MAX_FILES
from hubgate.server.hub.git.unpack import MAX_PACK_BYTES, InvalidPack, PackTooLarge, unpack
from hubgate.server.hub.guests.charges import (
    Charge,
    bytes_charged,
    charge_git_storage,
    charge_of,
    hidden_files,
    storage_exceeded,
    use_files,
)
from hubgate.server.hub.guests.marked_commits import mark
from hubgate.server.hub.guests.pointers import pointer_sha
from hubgate.server.hub.lfs import store as lfs_store
from hubgate.server.hub.repos import copied_refs, push_rights, store
from hubgate.server.hub.repos.model import REPO_GONE, Repo, is_pull_request, pull_request_of
from hubgate.server.hub.repos.refs import MoveResult, RefConflict, move_refs
from hubgate.server.jobs.caller import current_job_caller

# Larger files must use git lfs, unless the operator allows larger files inside a commit.
MAX_FILE_BYTES = 100 * 1024 * 1024
MAX_LISTED = 5
ONE_AT_A_TIME = "Users who may not write to this repo can push to only one pull request at a time."
# A client that sends more than this after its push was rejected is disconnected.
MAX_DRAINED_BYTES = 256 * 1024 * 1024

# Reads the identity of the caller again.
ReloadIdentity = Callable[[], Awaitable[Identity]]


async def advertisement(repos: Repos, repo: Repo, identity: Identity) -> bytes:
    refs = await repos.db.read_long(lambda tx: store.refs(tx, repo.id))
    return receive_pack.advertisement(refs, thin=push_rights.may_send_deltas(identity, repo))


async def push(
    repos: Repos,
    repo: Repo,
    identity: Identity,
    request: PushRequest,
    pack: AsyncIterator[bytes],
    reload_identity: ReloadIdentity,
) -> PushOutcome:
    """Run a push and return the outcome for each ref. The pack is read to its end even if the push is rejected."""
    if request.too_many_commands:
        await _drain(pack)
        raise Unprocessable(f"A push may change at most {receive_pack.MAX_COMMANDS:,} refs. Push them in parts.")
    refused = await push_rights.refusals(repos, identity, repo, request.changes)
    changes = _pending(request, refused)
    if all(change.new_sha is None for change in changes):
        await _drain(pack)
        return await _move(repos, repo, request, refused, reload_identity)
    folder = await copied_refs.refresh(repos, repo.id)
    to_pull_request = any(is_pull_request(change.ref) for change in changes)
    number = pull_request_of(changes[0].ref) or 0
    charge = charge_of(repo, identity, number) if to_pull_request else None
    if charge is not None and len(changes) > 1:
        # A charge ends with the merge of its pull request, so everything charged must be in that pull request.
        await _drain(pack)
        return PushOutcome(_for_all(request, "refused, see above"), messages=[ONE_AT_A_TIME])
    in_use = await bytes_charged(repos, repo, charge) if charge is not None else 0
    async with quarantine(repos.folders.root, folder) as incoming:
        try:
            max_bytes = repos.guest_bytes - in_use if charge is not None else MAX_PACK_BYTES
            await unpack(incoming, pack, max_bytes, thin=push_rights.may_send_deltas(identity, repo))
        except InvalidPack as problem:
            await _drain(pack)
            if charge is not None and isinstance(problem, PackTooLarge):
                refusal = storage_exceeded(repos, in_use, "more than the remaining bytes")
                return PushOutcome(_for_all(request, "refused, see above"), messages=[refusal.message])
            return PushOutcome(_for_all(request, "unpacker error"), problem.reason, problem.flaws)
        max_objects, max_file_bytes, referenced_files = repos.limits.pushed_objects, _max_file_bytes(repos), set[str]()
        findings = await inspection.inspect(
            incoming,
            max_objects,
            max_file_bytes,
            lambda found: _pointer_problems(repos, repo, found, charge, referenced_files),
        )
        rejection = await _rejection(repos, incoming, findings, request, changes)
        if rejection is not None:
            return rejection
        if charge is not None and await store.ref(repos.db, repo.id, changes[0].ref) != changes[0].old_sha:
            # Checked before the objects land: otherwise the guest would be charged for a push that fails.
            return PushOutcome({**_for_all(request, "fetch first"), **refused})
        if findings.objects and to_pull_request:
            try:
                await _charge_and_mark(repos, repo, incoming, findings, charge, referenced_files, changes)
            except (Forbidden, NotFound) as problem:
                return PushOutcome(_for_all(request, "refused, see above"), messages=[problem.message])
        if findings.objects:
            await incoming.land()
    failpoint.hit("push-objects-landed")
    return await _move(repos, repo, request, refused, reload_identity, charge)


async def _charge_and_mark(
    repos: Repos,
    repo: Repo,
    incoming: Quarantine,
    findings: Findings,
    charge: Charge | None,
    files: Collection[str],
    changes: Sequence[RefChange],
) -> None:
    """Charge and mark a push to a pull request before its objects land: they stay even if the ref cannot move (attack
    O72).
    """
    if charge is not None:
        if len(findings.commits) > MAX_COMMITS:
            raise Forbidden(f"Users who may not write to this repo can push at most {MAX_COMMITS:,} commits at once.")
        if await inspection.has_unreachable_objects(
            incoming, [change.new_sha for change in changes if change.new_sha is not None]
        ):
            raise Forbidden("The push contains objects that are not part of the pull request.")
        if missing := await use_files(repos, repo, charge, files):
            raise Forbidden(_not_uploaded(min(missing)))
        await charge_git_storage(repos, repo, charge, await incoming.size())
    if len(findings.commits) <= MAX_COMMITS:
        await mark(repos, repo, await incoming.not_in_repo(findings.commits))


def _max_file_bytes(repos: Repos) -> int:
    return max(MAX_FILE_BYTES, repos.regular_upload_max)


def _pending(request: PushRequest, refused: Mapping[str, str]) -> list[RefChange]:
    """The changes that are not rejected, deletions first: a deleted ref may conflict with a new one."""
    if refused and "atomic" in request.capabilities:
        return []
    changes = [change for change in request.changes if change.ref not in refused and not _deletes_nothing(change)]
    return sorted(changes, key=lambda change: change.new_sha is not None)


def _deletes_nothing(change: RefChange) -> bool:
    return change.old_sha is None and change.new_sha is None


def _all_or_none(request: PushRequest, refused: Mapping[str, str]) -> dict[str, str]:
    return (
        {**_for_all(request, "atomic push failed"), **refused}
        if "atomic" in request.capabilities and refused
        else {**refused}
    )


def _for_all(request: PushRequest, reason: str) -> dict[str, str]:
    return {change.ref: reason for change in request.changes}


async def _rejection(
    repos: Repos, incoming: Quarantine, findings: Findings, request: PushRequest, changes: Sequence[RefChange]
) -> PushOutcome | None:
    """The outcome if the objects are rejected, else None. Files are checked first: later checks walk the trees."""
    if findings.too_many_objects:
        max_objects = repos.limits.pushed_objects
        return PushOutcome(_for_all(request, f"a push may have at most {max_objects:,} objects, push it in parts"))
    tips = [change.new_sha for change in changes if change.new_sha is not None]
    messages = await _problem_messages(repos, incoming, findings, tips)
    if messages:
        return PushOutcome(_for_all(request, "refused, see above"), messages=messages)
    if not await inspection.is_connected(incoming, tips):
        reason = "shallow update not allowed" if request.shallow else "missing necessary objects"
        return PushOutcome(_for_all(request, reason))
    commits = await inspection.commits_among(incoming, tips)
    not_commits = {
        change.ref: "a branch must point to a commit"
        for change in changes
        if change.new_sha and not change.ref.startswith("refs/tags/") and change.new_sha not in commits
    }
    return (
        PushOutcome({**_for_all(request, "refused because another ref was refused"), **not_commits})
        if not_commits
        else None
    )


async def _problem_messages(repos: Repos, incoming: Quarantine, findings: Findings, tips: Sequence[str]) -> list[str]:
    """The problems with the pushed files, each with its path."""
    if findings.oversized_messages:
        # First: the search for paths below would read these objects.
        sha, size = next(iter(findings.oversized_messages.items()))
        return [f"{sha} is a commit or tag of {size:,} bytes. At most {MAX_MESSAGE_OBJECT_BYTES:,} bytes are allowed."]
    rejected = [*findings.oversized_files, *findings.bad_pointers, *findings.oversized_trees, *findings.bad_names]
    if not rejected:
        return []
    listed = rejected[:MAX_LISTED]
    paths = await inspection.paths_of(incoming, tips, set(listed))
    messages = [f"{_printable(paths.get(sha, sha))} {_problem(repos, findings, sha)}" for sha in listed]
    return [*messages, f"and {len(rejected) - MAX_LISTED} more"] if len(rejected) > MAX_LISTED else messages


def _problem(repos: Repos, findings: Findings, sha: str) -> str:
    if sha in findings.oversized_files:
        return (
            f"has {findings.oversized_files[sha]:,} bytes. Files over {_max_file_bytes(repos):,} bytes must use git "
            "lfs: git lfs migrate import --include=..."
        )
    if sha in findings.oversized_trees:
        return f"has more than {MAX_FOLDER_DEPTH} nested folders, or more than {MAX_FILES:,} files."
    return findings.bad_pointers.get(sha) or findings.bad_names[sha]


async def _pointer_problems(
    repos: Repos, repo: Repo, pointers: Mapping[str, Pointer], charge: Charge | None, referenced_files: set[str]
) -> dict[str, str]:
    """The problems with pointers, by blob. The large files that a guest's push references are collected in
    `referenced_files`; those that a writer's push references become the owner's at once.
    """
    problems = await _upload_problems(repos, repo, pointers, charge)
    valid = {pointer.oid for sha, pointer in pointers.items() if sha not in problems}
    if charge is None:
        missing = await use_files(repos, repo, None, valid)
        dropped = {sha: _not_uploaded(pointer.oid) for sha, pointer in pointers.items() if pointer.oid in missing}
        return {**problems, **dropped}
    referenced_files |= valid
    non_canonical = {sha for sha, pointer in pointers.items() if sha != pointer_sha(pointer.oid, pointer.size)}
    return {
        **dict.fromkeys(non_canonical, "is not in the form that git lfs writes: git lfs migrate import"),
        **problems,
    }


async def _upload_problems(
    repos: Repos, repo: Repo, pointers: Mapping[str, Pointer], charge: Charge | None
) -> dict[str, str]:
    """The problems with pointers to files that were never uploaded to the repo: knowing a hash must not grant access
    to a file.
    """
    oids = {pointer.oid for pointer in pointers.values()}
    oids -= await hidden_files(repos, repo, charge, oids)
    sizes = await repos.db.read_long(lambda tx: lfs_store.sizes_of(tx, repo.id, list(oids)))
    problems: dict[str, str] = {}
    for sha, pointer in pointers.items():
        size = sizes.get(pointer.oid)
        if size is None:
            problems[sha] = _not_uploaded(pointer.oid)
        elif size != pointer.size:
            problems[sha] = f"says that {pointer.oid} has {pointer.size:,} bytes, but it has {size:,}."
    return problems


def _not_uploaded(oid: str) -> str:
    return f"points to the large file {oid}, which was never uploaded to this repo: git lfs push --all"


def _printable(path: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in path)


async def _move(
    repos: Repos,
    repo: Repo,
    request: PushRequest,
    refused: Mapping[str, str],
    reload_identity: ReloadIdentity,
    charge: Charge | None = None,
) -> PushOutcome:
    """Check permissions again and move the refs. Since the first check, the caller may have lost a role, or a token may
    have been revoked, a pull request closed or the repo deleted.
    """
    identity, current = await reload_identity(), await store.by_id(repos.db, repo.id)
    if current is None:
        return PushOutcome(_for_all(request, REPO_GONE))
    refused = {**await push_rights.refusals(repos, identity, current, request.changes), **refused}
    refused = {**await _created_concurrently(repos, current, request), **refused}
    changes = _pending(request, refused)
    absent = [f"{change.ref} did not exist" for change in request.changes if _deletes_nothing(change)]
    if not changes:
        return PushOutcome(_all_or_none(request, refused), messages=[] if refused else absent[:MAX_LISTED])
    if charge is not None:
        charge.is_non_fast_forward = not await _are_fast_forwards(repos, repo, changes)
    try:
        atomic, user_id = "atomic" in request.capabilities, identity.user_id or ""
        moves = await move_refs(repos, current, changes, atomic=atomic, charge=charge, user_id=user_id)
    except RefConflict as problem:
        moves = MoveResult((), problem.stale)
    except NotFound as problem:
        # The repo or the account was deleted.
        return PushOutcome(_for_all(request, problem.message))
    failpoint.hit("push-before-report")
    refused |= {change.ref: "fetch first" for change in moves.stale}
    with_link = moves.moved and "quiet" not in request.capabilities
    messages = [f"{repos.base_url}{_page(current, moves.moved)}"] if with_link else []
    return PushOutcome(_all_or_none(request, refused), messages=messages)


async def _are_fast_forwards(repos: Repos, repo: Repo, changes: Sequence[RefChange]) -> bool:
    """Whether each change is a fast-forward."""
    folder = repos.folders.of(repo.id)
    try:
        async with repos.walks.acquire(current_job_caller.get().share_key, repo.id):
            return all([await history.is_ancestor(folder, change.new_sha, change.old_sha) for change in changes])
    except (Unavailable, program.GitFailed):
        # Unknown within the time limit: the bytes stay charged.
        return False


async def _created_concurrently(repos: Repos, repo: Repo, request: PushRequest) -> dict[str, str]:
    absent = {change.ref for change in request.changes if _deletes_nothing(change)}
    if not absent:
        return {}
    names = {name for name, _ in await repos.db.read_long(lambda tx: store.refs(tx, repo.id))}
    return dict.fromkeys(absent & names, "fetch first")


def _page(repo: Repo, moved: Sequence[RefChange]) -> str:
    pull_request = pull_request_of(moved[0].ref)
    return f"{repo.path}/discussions/{pull_request}" if pull_request else repo.path


async def _drain(pack: AsyncIterator[bytes]) -> None:
    """Read and discard the pack: a client reads the response only after sending everything."""
    count = 0
    async for part in pack:
        count += len(part)
        if count > MAX_DRAINED_BYTES:
            return
