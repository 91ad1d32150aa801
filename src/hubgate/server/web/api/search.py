"""`GET /api/quicksearch`: the best matches of each kind among what the caller may see."""

from collections.abc import Callable
from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.edge.routes import THE_HUB, Endpoint, Query, Route, without_subject
from hubgate.server.errors import BadRequest
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.collections.model import Collection
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.search.searching import Section, search
from hubgate.server.hub.search.store import FoundAccount, FoundDiscussion
from hubgate.server.paging import PageRequest, parse_page
from hubgate.server.web.api.repos import queries
from hubgate.server.web.avatars import avatar_url

DEFAULT_LIMIT, MAX_LIMIT = 5, 20


def _repo(repo: Repo) -> dict[str, Any]:
    return {"_id": repo.id, "id": repo.full_name, "private": bool(repo.private), "gated": repo.gated or False}


def _account(account: FoundAccount) -> dict[str, Any]:
    return {
        "_id": account.id,
        "name": account.name,
        "fullname": account.fullname or account.name,
        "avatarUrl": avatar_url(account.id),
        "type": account.kind,
    }


def _collection(collection: Collection) -> dict[str, Any]:
    owner = {"name": collection.owner_name, "type": collection.owner_kind}
    return {
        "_id": collection.id,
        "slug": collection.slug,
        "title": collection.title,
        "owner": owner,
        "private": bool(collection.private),
    }


def _discussion(found: FoundDiscussion) -> dict[str, Any]:
    discussion = found.discussion
    return {
        "_id": discussion.id,
        "num": discussion.num,
        "title": discussion.title,
        "status": discussion.status,
        "isPullRequest": discussion.is_pull_request,
        "repo": {"name": found.repo.full_name, "type": found.repo.type},
    }


# By the value of `type`: the section, its name in the answer, and how an item is rendered.
_KINDS: dict[str, tuple[Section, str, Callable[[Any], dict[str, Any]]]] = {
    "model": (Section.MODELS, "models", _repo),
    "dataset": (Section.DATASETS, "datasets", _repo),
    "space": (Section.SPACES, "spaces", _repo),
    "user": (Section.USERS, "users", _account),
    "org": (Section.ORGANIZATIONS, "orgs", _account),
    "collection": (Section.COLLECTIONS, "collections", _collection),
    "discussion": (Section.DISCUSSIONS, "discussions", _discussion),
}


def routes(repos: Repos) -> list[Route]:
    async def quick_search(request: HubRequest) -> JsonResponse:
        fields = request.query_fields()
        kinds = queries.all_values(fields, "type") or list(_KINDS)
        unknown = next((kind for kind in kinds if kind not in _KINDS), None)
        if unknown is not None:
            raise BadRequest(f"type must be one of {', '.join(_KINDS)}.")
        limit = parse_page({"limit": queries.last_value(fields, "limit", str(DEFAULT_LIMIT))}, ()).limit
        sections = [_KINDS[kind][0] for kind in dict.fromkeys(kinds)]
        text, identity = queries.last_value(fields, "q"), caller_of(request).identity
        results = await search(repos, identity, text, sections, PageRequest(min(limit, MAX_LIMIT)))
        answer: dict[str, Any] = {}
        for section, name, render in _KINDS.values():
            if section in results.pages:
                answer[name] = [render(found.item) for found in results.pages[section].items]
        return JsonResponse(answer)

    return [
        Route(
            "GET",
            "/api/quicksearch",
            Endpoint(Action.REPO_LIST, THE_HUB, without_subject(quick_search)),
            Surface.API,
            "Search everything you may see",
            query=(
                Query("q", "Words: each is a part of the name, the owner, a tag or the card."),
                Query("type", f"One of {', '.join(_KINDS)}; may be repeated. All by default."),
                Query("limit", f"Results of each type: {DEFAULT_LIMIT} by default, at most {MAX_LIMIT}."),
            ),
            answers={200: ("The best matches, by type.", dict[str, list[dict[str, Any]]])},
        )
    ]
