"""The repos of a user or an organization on the profile page: counts by type, and a list of one type."""

from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import Namespace
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.context import Repos
from hubgate.server.hub.listing import listing
from hubgate.server.hub.listing.store import RepoFilter
from hubgate.server.hub.repos.model import RepoType
from hubgate.server.web.pages.listing import ListQuery

ROWS = 20


async def owned(repos: Repos, request: HubRequest, owner: Namespace, name: str) -> dict[str, Any]:
    """Values for profile/repos.html."""
    identity, query = caller_of(request).identity, request.query()
    counts = await listing.counted(repos, identity, owner.id)
    by_kind = dict(zip(RepoType, (counts.models, counts.datasets, counts.spaces), strict=True))
    first_with_repos = next((kind for kind, count in by_kind.items() if count), RepoType.MODEL)
    kind = next((kind for kind in RepoType if kind.plural == query.get("show")), first_with_repos)
    path = f"/{name}"
    asked = ListQuery(query, path, kept={"show": kind.plural if "show" in query else ""})
    wanted = RepoFilter(type=kind.value, owner_id=owner.id)
    page = await listing.listed(repos, identity, wanted, asked.page(listing.CURSOR, ROWS))
    return {
        "kinds": [
            (
                listed_kind.plural.capitalize(),
                f"{path}?show={listed_kind.plural}",
                by_kind[listed_kind],
                listed_kind is kind,
            )
            for listed_kind in RepoType
        ],
        "kind": kind,
        "total": sum(by_kind.values()),
        "repos": page.items,
        "may_create": decide(identity, Action.REPO_CREATE, owner).allowed,
        "pages": asked.shown(page.next_cursor),
    }
