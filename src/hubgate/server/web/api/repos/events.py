"""`GET /events?after=N`: the events of a repo in order, for callers who may see the repo now and could see it then."""

from collections.abc import Sequence
from typing import Any

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import decide
from hubgate.server.clock import iso
from hubgate.server.edge.routes import Query, Route
from hubgate.server.errors import BadRequest
from hubgate.server.events import store
from hubgate.server.events.redaction import remove_text
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions.entries import store as entry_store
from hubgate.server.hub.repos.model import Repo
from hubgate.server.storage.database import Row, Tx
from hubgate.server.web.repo_routes import api_routes, repo_endpoint

MAX_EVENTS = 1000


class RepoEvent(msgspec.Struct, rename="camel"):
    seq: int
    created_at: str
    # The webhook payload without the part that names the webhook.
    payload: msgspec.Raw


def routes(repos: Repos) -> list[Route]:
    async def list_all(request: HubRequest, repo: Repo) -> JsonResponse:
        query = request.query()
        after, limit = _number(query.get("after", "0"), "after"), _number(query.get("limit", "100"), "limit")
        limit = min(max(limit, 1), MAX_EVENTS)
        # Events from before a repo became public stay private: they contain former names, deleted branches, and the
        # ids of commits that a squash was meant to remove but that can still be read.
        as_private = msgspec.structs.replace(repo, private=1).as_resource()
        could_see = decide(caller_of(request).identity, Action.REPO_SEE, as_private).allowed
        events = store.of_repo if could_see else store.of_repo_while_public

        async def read(tx: Tx) -> list[RepoEvent]:
            return await _without_hidden_texts(tx, await events(tx, repo.id, after, limit))

        return JsonResponse(await repos.db.read_long(read))

    query = (
        Query("after", "The number of the last event you have seen.", {"type": "integer", "minimum": 0}),
        Query("limit", f"At most {MAX_EVENTS:,}.", {"type": "integer", "minimum": 1}),
    )
    answers = {
        200: (
            "Oldest first. Events from a time when the repo was private are omitted for callers who could not see it.",
            list[dict[str, Any]],
        )
    }
    see = Action.REPO_SEE
    return api_routes("GET", "/events", repo_endpoint(repos, see, list_all), "Events of a repo", answers, query=query)


async def _without_hidden_texts(tx: Tx, rows: Sequence[Row]) -> list[RepoEvent]:
    """The events, without the texts of comments that were hidden or removed since then."""
    payloads = {row["repo_seq"]: msgspec.json.decode(row["body"]) for row in rows if row["scope"].startswith("discuss")}
    commented = {seq: payload["comment"] for seq, payload in payloads.items() if "comment" in payload}
    visible = await entry_store.visible_among(tx, {comment["id"] for comment in commented.values()})
    changed = {seq: comment for seq, comment in commented.items() if comment["id"] not in visible}
    for comment in changed.values():
        remove_text(comment)
    return [
        RepoEvent(
            row["repo_seq"],
            iso(row["created_at"]),
            msgspec.Raw(
                msgspec.json.encode(payloads[row["repo_seq"]]) if row["repo_seq"] in changed else bytes(row["body"])
            ),
        )
        for row in rows
    ]


def _number(text: str, name: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise BadRequest(f"{name} must be a whole number.")
    return int(text)
