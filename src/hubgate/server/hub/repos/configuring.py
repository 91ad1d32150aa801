"""Settings of a repo."""

from typing import Any

import msgspec

from hubgate.server.audit.model import Actor
from hubgate.server.audit.model import Kind as Entry
from hubgate.server.errors import NotFound, Unprocessable
from hubgate.server.events import outbox
from hubgate.server.events.kinds import Kind
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.auditing import note
from hubgate.server.hub.repos.model import REPO_GONE, Repo
from hubgate.server.storage.database import Tx

GATES = ("", "auto", "manual")


class Changes(msgspec.Struct, frozen=True):
    """None leaves a setting as it is."""

    private: bool | None = None
    # "" opens the gate.
    gated: str | None = None
    discussions_disabled: bool | None = None

    @property
    def of_access(self) -> bool:
        """Whether they decide who sees what, which takes more than the right to write."""
        return self.private is not None or self.gated is not None


async def configure(repos: Repos, repo: Repo, changes: Changes, actor: Actor) -> Repo:
    """An event and an entry only if something changed."""
    if changes.gated is not None and changes.gated not in GATES:
        raise Unprocessable("gated is auto, manual or false.")
    now = repos.clock()

    async def unit(tx: Tx) -> Repo:
        # Takes the number first: from here on nobody else changes the repo.
        seq = await store.next_seq(tx, repo.id, now)
        before = await store.by_id(tx, repo.id)
        if seq is None or before is None or before.owner_id != repo.owner_id:
            # Gone, or another's by now, who was not asked.
            raise NotFound(REPO_GONE, code="RepoNotFound")
        after = _with(before, changes)
        if after == before:
            raise _NothingToDo
        await store.configure(tx, repo.id, bool(after.private), after.gated, bool(after.discussions_disabled))
        updated: dict[str, Any] = {"private": bool(after.private)} if after.private != before.private else {}
        await outbox.record(tx, Kind.REPO_CONFIG, after.snapshot, seq, {"updatedConfig": updated}, repos.base_url, now)
        said = _said(before, after)
        text = f"changed the settings of the {after.label}: {', '.join(said.values())}"
        await note(tx, after.owner, Entry.REPO_UPDATE_SETTINGS, after, text, actor, now, changed=said)
        return after

    try:
        return await repos.db.write(unit)
    except _NothingToDo:
        return repo


class _NothingToDo(Exception):
    """Rolls the event's number back."""


def _said(before: Repo, after: Repo) -> dict[str, str]:
    """Each setting that changed, and what it is now."""
    said = {
        "visibility": "private" if after.private else "public",
        "gate": f"gated ({after.gated})" if after.gated else "not gated",
        "discussions": f"discussions {'off' if after.discussions_disabled else 'on'}",
    }
    same = {
        "visibility": before.private == after.private,
        "gate": before.gated == after.gated,
        "discussions": before.discussions_disabled == after.discussions_disabled,
    }
    return {name: text for name, text in said.items() if not same[name]}


def _with(repo: Repo, changes: Changes) -> Repo:
    return msgspec.structs.replace(
        repo,
        private=repo.private if changes.private is None else int(changes.private),
        gated=repo.gated if changes.gated is None else changes.gated,
        discussions_disabled=(
            repo.discussions_disabled if changes.discussions_disabled is None else int(changes.discussions_disabled)
        ),
    )
