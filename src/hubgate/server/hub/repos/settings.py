"""Changing the settings of a repo."""

from typing import Any

import msgspec

from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.errors import NotFound, Unprocessable
from hubgate.server.events import outbox
from hubgate.server.events.kinds import Kind
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import REPO_GONE, Repo
from hubgate.server.hub.repos.search_documents import update_name_and_access
from hubgate.server.hub.repos.transactions import record_audit
from hubgate.server.storage.database import Tx

GATES = ("", "auto", "manual")


class SettingsChanges(msgspec.Struct, frozen=True):
    """Changes to the settings of a repo. None leaves a setting unchanged."""

    private: bool | None = None
    # "" turns gating off.
    gated: str | None = None
    discussions_disabled: bool | None = None

    @property
    def affects_access(self) -> bool:
        """Whether the changes affect access to the repo, which requires more than write permission."""
        return self.private is not None or self.gated is not None


async def configure(repos: Repos, repo: Repo, changes: SettingsChanges, actor: Actor) -> Repo:
    """Change the settings; record an event and an audit entry only if a setting changed."""
    if changes.gated is not None and changes.gated not in GATES:
        raise Unprocessable("gated must be auto, manual or false.")
    now = repos.clock()

    async def unit(tx: Tx) -> Repo:
        # First, because this locks the repo.
        seq = await store.next_seq(tx, repo.id, now)
        before = await store.by_id(tx, repo.id)
        if seq is None or before is None or before.owner_id != repo.owner_id:
            # Deleted, or moved to another owner, who did not authorize this.
            raise NotFound(REPO_GONE, code="RepoNotFound")
        after = _with(before, changes)
        if after == before:
            raise _NothingChanged
        await store.configure(tx, repo.id, bool(after.private), after.gated, bool(after.discussions_disabled))
        await update_name_and_access(tx, after)
        updated: dict[str, Any] = {"private": bool(after.private)} if after.private != before.private else {}
        await outbox.record(tx, Kind.REPO_CONFIG, after.snapshot, seq, {"updatedConfig": updated}, repos.base_url, now)
        changed_settings = _describe_changes(before, after)
        text = f"changed the settings of the {after.label}: {', '.join(changed_settings.values())}"
        await record_audit(
            tx, after.owner, EntryType.REPO_UPDATE_SETTINGS, after, text, actor, now, changed=changed_settings
        )
        return after

    try:
        return await repos.db.write(unit)
    except _NothingChanged:
        return repo


class _NothingChanged(Exception):
    """Rolls back the sequence number of the event."""


def _describe_changes(before: Repo, after: Repo) -> dict[str, str]:
    """Each changed setting with a description of its new value."""
    changed_settings = {
        "visibility": "private" if after.private else "public",
        "gate": f"gated ({after.gated})" if after.gated else "not gated",
        "discussions": f"discussions {'off' if after.discussions_disabled else 'on'}",
    }
    same = {
        "visibility": before.private == after.private,
        "gate": before.gated == after.gated,
        "discussions": before.discussions_disabled == after.discussions_disabled,
    }
    return {name: text for name, text in changed_settings.items() if not same[name]}


def _with(repo: Repo, changes: SettingsChanges) -> Repo:
    return msgspec.structs.replace(
        repo,
        private=repo.private if changes.private is None else int(changes.private),
        gated=repo.gated if changes.gated is None else changes.gated,
        discussions_disabled=(
            repo.discussions_disabled if changes.discussions_disabled is None else int(changes.discussions_disabled)
        ),
    )
