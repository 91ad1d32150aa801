"""Asking for access to a gated repo, and withdrawing the request."""

from collections.abc import Mapping

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.model import User
from hubgate.server.errors import NotFound
from hubgate.server.hub.context import Repos
from hubgate.server.hub.gating import store
from hubgate.server.hub.gating.model import (
    ACCEPTED,
    PENDING,
    AccessRequest,
    RepoNotGated,
    check_answers,
    gate_form,
    require_answers,
)
from hubgate.server.hub.gating.notifications import notify_reviewers
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import REPO_GONE, Repo
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Tx


async def ask(repos: Repos, repo: Repo, user: User, answers: Mapping[str, str]) -> AccessRequest:
    """Ask for access, with an answer to every question of the card. An automatic gate accepts at once; an existing
    request stays as it is.
    """
    now, stored_answers = repos.clock(), check_answers(answers)

    async def unit(tx: Tx) -> AccessRequest | None:
        # The user is locked before the repo, as in a deletion of the account.
        if await account_store.lock_user(tx, user.id) is None:
            return None
        await repo_store.lock(tx, repo.id)
        current = await repo_store.by_id(tx, repo.id)
        if current is None:
            raise NotFound(REPO_GONE, code="RepoNotFound")
        if not current.gated:
            raise RepoNotGated(current)
        if existing := await store.of_user(tx, repo.id, user.id):
            return existing
        require_answers(gate_form(current), answers)
        values: dict[str, str | int | None] = {
            "id": new_id(now),
            "repo_id": repo.id,
            "user_id": user.id,
            "status": ACCEPTED if current.gated == "auto" else PENDING,
            "asked": 1,
            "answers": stored_answers,
            "reason": "",
            "created_at": now,
            "reviewed_at": now if current.gated == "auto" else None,
            "reviewer_id": None,
        }
        await store.add(tx, values)
        if values["status"] == PENDING:
            await notify_reviewers(tx, repos, current, user)
        return await store.of_user(tx, repo.id, user.id)

    found = await repos.db.write(unit)
    if found is None:
        raise NotFound("Your account was deleted by another request.")
    repos.outbox.send_soon()
    return found


async def cancel(repos: Repos, repo: Repo, user: User) -> None:
    """Withdraw a pending request."""
    if not await repos.db.write(lambda tx: store.remove_pending(tx, repo.id, user.id)):
        raise NotFound("You have no pending request for this repo.")


async def with_access(repos: Repos, repo: Repo, user_id: str | None) -> Repo:
    """The repo, marked as `granted` if this user's request for access to it was accepted."""
    if not repo.gated or user_id is None or not await store.has_access(repos.db, repo.id, user_id):
        return repo
    return repo.granted_to_caller()
