"""Names to watch: which of them do not exist, and suggestions while a user types."""

from collections.abc import Sequence

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.matching import names_store
from hubgate.server.webhooks.model import OWNER_TYPES, REPO_TYPES, Watch

MAX_SUGGESTIONS = 10
LONGEST_TEXT = 200
_PREFIXES = {"datasets/": "dataset", "spaces/": "space"}


async def unknown_names(webhooks: Webhooks, watched: Sequence[Watch], visible: VisibleRepos) -> list[Watch]:
    """The watches whose names belong to no account or repo that the caller may see. A hidden repo is listed like a
    missing one (attack W30).
    """

    async def unit(tx: Tx) -> list[Watch]:
        # An empty target is a stored watch that has ended.
        return [
            watch for watch in watched if watch.target_id == "" or not await names_store.is_known(tx, watch, visible)
        ]

    return await webhooks.db.read_long(unit)


async def suggest(webhooks: Webhooks, text: str, visible: VisibleRepos) -> list[Watch]:
    """Accounts and repos whose names begin with `text`: `type:name`, or a name."""
    kind, name = _parsed(text[:LONGEST_TEXT].strip())
    owner, slash, part = name.partition("/")

    async def unit(tx: Tx) -> list[Watch]:
        if slash:
            found = await names_store.repos_of(tx, owner, part, visible, MAX_SUGGESTIONS)
        else:
            found = await names_store.accounts(tx, name, MAX_SUGGESTIONS) if kind not in REPO_TYPES else []
            if kind not in OWNER_TYPES:
                found += await names_store.own_repos(tx, visible.owners, name, MAX_SUGGESTIONS)
        return [watch for watch in found if kind in ("", watch.type)][:MAX_SUGGESTIONS]

    return await webhooks.db.read_long(unit) if name else []


def _parsed(text: str) -> tuple[str, str]:
    """The type, which may be empty, and the beginning of the name."""
    kind, colon, name = text.partition(":")
    if colon and kind.strip().lower() in (*OWNER_TYPES, *REPO_TYPES):
        return kind.strip().lower(), name.strip()
    for prefix, repo_type in _PREFIXES.items():
        if text.startswith(prefix):
            return repo_type, text.removeprefix(prefix)
    return "", text
