"""Links from a delivery to its repo and to what changed there: a commit, a discussion or a comment."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from hubgate.server.webhooks.activity.delivery_log import FullDelivery
from hubgate.server.webhooks.activity.store import LoggedDelivery

_PREFIXES = {"dataset": "datasets/", "space": "spaces/"}
_SHORT = 7


class DeliveryLinks(Struct, frozen=True):
    """Addresses on this hub. The repo may have been deleted since then, and may be invented in a test."""

    repo: str
    # What changed: a label and an address; None if only the repo itself did, or if it was deleted.
    change: tuple[str, str] | None = None


def repo_path(repo_type: str, name: str) -> str:
    return f"/{_PREFIXES.get(repo_type, '')}{quote(name)}"


def links_of(full: FullDelivery) -> DeliveryLinks:
    path = repo_path(full.logged.repo_type, full.logged.repo_name)
    payload = {} if full.payload is None or full.logged.is_test else msgspec.json.decode(full.payload)
    return DeliveryLinks(path, _change(path, full.logged, payload))


def _change(path: str, logged: LoggedDelivery, payload: Mapping[str, Any]) -> tuple[str, str] | None:
    if logged.action == "delete":
        return None
    if discussion := payload.get("discussion"):
        # Shown as one number, so that a hidden title is not repeated here.
        label, kind = f"#{discussion['num']}", "Pull request" if discussion["isPullRequest"] else "Discussion"
        anchor = f"#{payload['comment']['id']}" if logged.scope == "discussion.comment" else ""
        return f"{kind} {label}", f"{path}/discussions/{discussion['num']}{anchor}"
    commits = [ref["newSha"] for ref in payload.get("updatedRefs", ()) if ref["newSha"]]
    if commits:
        return f"Commit {commits[0][:_SHORT]}", f"{path}/commit/{commits[0]}"
    return None
