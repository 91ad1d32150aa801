"""The latest events that a user may see: of the user's repos, of organizations, and of what the user watches."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.access.identity import Identity
from hubgate.server.access.visibility import VisibleRepos, visible_repos
from hubgate.server.hub.activity import store
from hubgate.server.hub.activity.model import EventBody, Line, line_of, parse_body
from hubgate.server.hub.activity.store import EventRow
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.search.store import FoundDiscussion, discussions_among, repos_among
from hubgate.server.storage.database import Tx

MAX_SOURCES = 50
# Of each owner and watched repo.
EVENTS_OF_SOURCE = 40
EVENTS_OF_REPO = 10
# Repos that are read, of which some may be hidden from the user, and those on the page.
MAX_READ = 100
MAX_REPOS = 8
MAX_LINES = 3


class Sources(Struct, frozen=True):
    """Whose events are shown, by ids."""

    # The user and the user's organizations.
    own: Sequence[str]
    watched_owners: Sequence[str] = ()
    watched_repos: Sequence[str] = ()


class RepoActivity(Struct, frozen=True):
    # None if the repo was deleted.
    repo: Repo | None
    name: str
    lines: list[Line]


async def recent_activity(repos: Repos, identity: Identity, sources: Sources) -> list[RepoActivity]:
    visible = visible_repos(identity)

    async def read(tx: Tx) -> list[RepoActivity]:
        owners = list(dict.fromkeys((*sources.own, *sources.watched_owners)))[:MAX_SOURCES]
        events = await store.latest_of_owners(tx, owners, EVENTS_OF_SOURCE)
        events += await store.latest_of_repos(tx, sources.watched_repos[:MAX_SOURCES], EVENTS_OF_REPO)
        latest = sorted(
            {event.id: event for event in events}.values(), key=lambda event: event.created_at, reverse=True
        )
        repo_ids = list(dict.fromkeys(event.repo_id for event in latest))[:MAX_READ]
        existing = await repos_among(tx, repo_ids, visible) if repo_ids else {}
        shown = _by_repo(event for event in latest if _may_see(event, existing.get(event.repo_id), visible, sources))
        bodies = await store.bodies(tx, [event.id for group in shown.values() for event in group])
        parsed = {event_id: parse_body(body) for event_id, body in bodies.items()}
        mentioned = list(dict.fromkeys(body.discussion.id for body in parsed.values() if body.discussion))
        discussions = await discussions_among(tx, mentioned, visible) if mentioned else {}
        found = [_activity(existing.get(repo_id), group, parsed, discussions) for repo_id, group in shown.items()]
        return [each for each in found if each.lines][:MAX_REPOS]

    return await repos.db.read_long(read)


def _may_see(event: EventRow, repo: Repo | None, visible: VisibleRepos, sources: Sources) -> bool:
    """As for the events of a repo in the API: events from before a repo became public stay private. Of deleted repos,
    only the deletion is shown, to their owners.
    """
    if repo is None:
        return event.action == "delete" and event.scope == "repo" and event.owner_id in sources.own
    return not event.private or repo.owner_id in visible.owners


def _by_repo(events: Iterable[EventRow]) -> dict[str, list[EventRow]]:
    """The latest events of each repo, the repo with the latest event first. Some are left out when they are read."""
    groups: dict[str, list[EventRow]] = {}
    for event in events:
        if len(groups) < 2 * MAX_REPOS or event.repo_id in groups:
            groups.setdefault(event.repo_id, []).append(event)
    return {repo_id: group[: 3 * MAX_LINES] for repo_id, group in groups.items()}


def _activity(
    repo: Repo | None,
    events: Sequence[EventRow],
    bodies: Mapping[str, EventBody],
    discussions: Mapping[str, FoundDiscussion],
) -> RepoActivity:
    lines: list[Line] = []
    name = repo.full_name if repo else ""
    for event in events:
        body = bodies.get(event.id) or parse_body(None)
        found = discussions.get(body.discussion.id) if body.discussion else None
        line = line_of(event.scope, event.action, event.created_at, body, found.discussion if found else None)
        name = name or body.repo.name
        if line is None:
            continue
        if lines and lines[-1].says_the_same(line):
            lines[-1] = replace(lines[-1], count=lines[-1].count + 1)
        else:
            lines.append(line)
    return RepoActivity(repo, name, lines[:MAX_LINES])
