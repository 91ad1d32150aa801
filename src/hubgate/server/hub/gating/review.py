"""Decisions of a repo's writers about access requests."""

from collections.abc import AsyncGenerator, Sequence
from functools import partial

import msgspec

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.model import User
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.errors import BadRequest, HubError, NotFound, Unprocessable
from hubgate.server.hub.context import Repos
from hubgate.server.hub.gating import store
from hubgate.server.hub.gating.model import (
    ACCEPTED,
    REJECTED,
    STATUSES,
    AccessRequest,
    OwnAccess,
    RepoNotGated,
    check_reason,
)
from hubgate.server.hub.gating.notifications import notify_requester
from hubgate.server.hub.gating.store import RequestFilter
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import REPO_GONE, Repo
from hubgate.server.hub.repos.transactions import record_audit
from hubgate.server.ids import new_id
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.storage.database import Tx

CURSOR = (int, str)
MAX_BATCH = 100
# Each may have 20 answers with 1,000 characters.
REPORTED_AT_ONCE = 200
# Deletes the request, so that the user can ask again.
RESET = "reset"

_DECISIONS = {"accepted": "accepted", "rejected": "rejected", "pending": "reopened", RESET: "deleted"}


class Requester(msgspec.Struct, frozen=True, rename="camel"):
    """Names a request by its user or by its id."""

    user: str | None = None
    user_id: str | None = None
    request_id: str | None = None


class BatchResult(msgspec.Struct, omit_defaults=True):
    user: str
    ok: bool
    error: str | None = None


async def list_requests(
    repos: Repos, repo: Repo, request_filter: RequestFilter, page_request: PageRequest
) -> Page[AccessRequest]:
    cursor = (int(page_request.after[0]), str(page_request.after[1])) if page_request.after else None
    rows = await repos.db.read_long(
        lambda tx: store.page(tx, repo.id, request_filter, cursor, page_request.fetch_limit)
    )
    return page_of(rows, page_request, _position)


async def report(repos: Repos, repo: Repo) -> AsyncGenerator[list[AccessRequest], None]:
    """All requests, newest first, in parts, so that they are never in memory together."""
    cursor: tuple[int, str] | None = None
    while part := await repos.db.read_long(partial(_reported, repo=repo, cursor=cursor)):
        yield part
        cursor = _position(part[-1])


async def _reported(tx: Tx, repo: Repo, cursor: tuple[int, str] | None) -> list[AccessRequest]:
    """The next part of a report. One query for each status: the index of requests begins with the status."""
    found = [
        request
        for status in STATUSES
        for request in await store.page(tx, repo.id, RequestFilter(status), cursor, REPORTED_AT_ONCE)
    ]
    return sorted(found, key=_position, reverse=True)[:REPORTED_AT_ONCE]


def _position(found: AccessRequest) -> tuple[int, str]:
    """The place of a request in lists. A decision does not change it."""
    return found.created_at, found.id


async def handle(repos: Repos, repo: Repo, requester: Requester, status: str, actor: Actor, reason: str = "") -> None:
    """Accept, reject or reopen a request, or delete it (`RESET`). Only a rejection has a reason. Fails if the request
    already has the status, so that only one of two equal concurrent decisions succeeds.
    """
    if status not in (*STATUSES, RESET):
        raise Unprocessable(f"status must be one of {', '.join(STATUSES)} or {RESET}.")
    now, text = repos.clock(), check_reason(reason) if status == REJECTED else ""

    async def unit(tx: Tx) -> None:
        current = await _lock_gated(tx, repo)
        found = await _find(tx, repo, requester)
        if found is None:
            raise NotFound("There is no such access request.")
        if status == ACCEPTED and found.user_id == actor.user_id:
            raise OwnAccess
        if status == RESET:
            changed = await store.remove(tx, found.id)
        else:
            changed = await store.set_status(tx, found.id, status, text, actor.user_id, now)
        if not changed:
            raise NotFound(f"The request of {found.user_name} is already {status}.")
        await _record(tx, current, found.user_name, _DECISIONS[status], actor, now)
        await notify_requester(tx, repos, current, found, status, actor.user_id)

    await repos.db.write(unit)
    repos.outbox.send_soon()


async def grant(repos: Repos, repo: Repo, requester: Requester, actor: Actor) -> None:
    """Grant access to a user, whether the user asked for it or not."""
    now = repos.clock()

    async def unit(tx: Tx) -> None:
        named = await _user(tx, requester)
        # The user is locked before the repo, as in a deletion of the account.
        user = await account_store.lock_user(tx, named.id) if named else None
        current = await _lock_gated(tx, repo)
        if user is None or user.disabled_at is not None:
            raise NotFound("User not found.")
        if user.id == actor.user_id:
            raise OwnAccess
        values: dict[str, str | int | None] = {
            "id": new_id(now),
            "repo_id": repo.id,
            "user_id": user.id,
            "status": ACCEPTED,
            "asked": 0,
            "answers": "{}",
            "reason": "",
            "created_at": now,
            "reviewed_at": now,
            "reviewer_id": actor.user_id,
        }
        if not await store.add(tx, values):
            existing = await store.of_user(tx, repo.id, user.id)
            if existing is None or not await store.set_status(tx, existing.id, ACCEPTED, "", actor.user_id, now):
                raise BadRequest(f"{user.name} already has access.")
            await notify_requester(tx, repos, current, existing, ACCEPTED, actor.user_id)
        await _record(tx, current, user.name, "granted", actor, now)

    await repos.db.write(unit)
    repos.outbox.send_soon()


async def handle_batch(
    repos: Repos, repo: Repo, requesters: Sequence[Requester], status: str, actor: Actor
) -> list[BatchResult]:
    """Handle several requests; each succeeds or fails alone."""
    if len(requesters) > MAX_BATCH:
        raise Unprocessable(f"At most {MAX_BATCH} requests can be handled at once.")
    results = []
    for requester in requesters:
        name = requester.user or requester.user_id or requester.request_id or ""
        try:
            await handle(repos, repo, requester, status, actor)
            results.append(BatchResult(name, True))
        except RepoNotGated:
            raise
        except HubError as error:
            results.append(BatchResult(name, False, error.message))
    return results


async def _lock_gated(tx: Tx, repo: Repo) -> Repo:
    """Lock the repo and return its current row. Raises if it is not gated or now has another owner."""
    await repo_store.lock(tx, repo.id)
    current = await repo_store.by_id(tx, repo.id)
    if current is None or current.owner_id != repo.owner_id:
        raise NotFound(REPO_GONE, code="RepoNotFound")
    if not current.gated:
        raise RepoNotGated(current)
    return current


async def _find(tx: Tx, repo: Repo, requester: Requester) -> AccessRequest | None:
    if requester.request_id:
        return await store.by_id(tx, repo.id, requester.request_id)
    user = await _user(tx, requester)
    return await store.of_user(tx, repo.id, user.id) if user else None


async def _user(tx: Tx, requester: Requester) -> User | None:
    if requester.user:
        found = await account_store.account_named(tx, requester.user)
        return found if isinstance(found, User) else None
    return await account_store.user(tx, requester.user_id) if requester.user_id else None


async def _record(tx: Tx, repo: Repo, user_name: str, decision: str, actor: Actor, now: int) -> None:
    is_grant = decision == "granted"
    start = f"granted {user_name} access" if is_grant else f"{decision} the request of {user_name} for access"
    text = f"{start} to the {repo.label}"
    await record_audit(
        tx, repo.owner, EntryType.REPO_REVIEW_ACCESS, repo, text, actor, now, user=user_name, decision=decision
    )
