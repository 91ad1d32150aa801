"""The repos of one user or organization, on its profile: counted by type, one type at a time."""

from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import Namespace
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.context import Repos
from hubgate.server.hub.listing import listing
from hubgate.server.hub.listing.store import Wanted
from hubgate.server.hub.repos.model import RepoType
from hubgate.server.web.pages.listing import Asked

ROWS = 20


async def owned(repos: Repos, request: HubRequest, owner: Namespace, name: str) -> dict[str, Any]:
    """For profile/repos.html."""
    identity, query = caller_of(request).identity, request.query()
    counts = await listing.counted(repos, identity, owner.id)
    by_kind = dict(zip(RepoType, (counts.models, counts.datasets, counts.spaces), strict=True))
    fullest = next((kind for kind, count in by_kind.items() if count), RepoType.MODEL)
    kind = next((kind for kind in RepoType if kind.plural == query.get("show")), fullest)
    path = f"/{name}"
    asked = Asked(query, path, kept={"show": kind.plural if "show" in query else ""})
    wanted = Wanted(type=kind.value, owner_id=owner.id)
    page = await listing.listed(repos, identity, wanted, asked.page(listing.CURSOR, ROWS))
    return {
        "kinds": [
            (one.plural.capitalize(), f"{path}?show={one.plural}", by_kind[one], one is kind) for one in RepoType
        ],
        "kind": kind,
        "total": sum(by_kind.values()),
        "repos": page.items,
        "may_create": decide(identity, Action.REPO_CREATE, owner).allowed,
        "pages": asked.shown(page.next_cursor),
    }
