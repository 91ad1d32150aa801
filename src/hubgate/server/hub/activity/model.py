"""What an event says on the home page. Pure.

Events do not name the user who caused them, so the texts say what happened to the repo.
"""

from urllib.parse import quote

import msgspec

from hubgate.server.events.payload import RefChange
from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.repos.model import pull_request_of

_BRANCH, _TAG = "refs/heads/", "refs/tags/"


class Line(msgspec.Struct, frozen=True):
    """One kind of event: its text, and the part of the repo's address that shows more."""

    text: str
    created_at: int
    # After the path of the repo, such as /commits/main.
    path: str = ""
    # The title of a discussion.
    title: str = ""
    # How many events in a row say the same.
    count: int = 1

    def says_the_same(self, other: "Line") -> bool:
        return (self.text, self.path, self.title) == (other.text, other.path, other.title)


class _DiscussionPart(msgspec.Struct):
    id: str
    num: int


class _RepoPart(msgspec.Struct):
    name: str


class _ConfigPart(msgspec.Struct):
    private: bool | None = None


class EventBody(msgspec.Struct, rename="camel"):
    """The parts of a payload that are shown."""

    repo: _RepoPart
    updated_refs: list[RefChange] = []
    updated_config: _ConfigPart | None = None
    discussion: _DiscussionPart | None = None


def parse_body(body: bytes | None) -> EventBody:
    return msgspec.json.decode(body, type=EventBody) if body is not None else EventBody(_RepoPart(""))


def line_of(scope: str, action: str, created_at: int, body: EventBody, discussion: Discussion | None) -> Line | None:
    """The line of an event; None for an event of a discussion that was removed since then."""
    if scope.startswith("discussion"):
        return _line_of_discussion(scope, action, created_at, body, discussion)
    match scope, action:
        case "repo", "create":
            return Line("Created", created_at)
        case "repo", "delete":
            return Line("Deleted", created_at)
        case "repo", "move":
            return Line(f"Moved from {body.repo.name}" if body.repo.name else "Moved", created_at)
        case "repo.config", _:
            private = body.updated_config.private if body.updated_config else None
            text = "Settings changed" if private is None else "Made private" if private else "Made public"
            return Line(text, created_at)
        case _:
            return _line_of_refs(created_at, body.updated_refs)


def _line_of_discussion(
    scope: str, action: str, created_at: int, body: EventBody, discussion: Discussion | None
) -> Line | None:
    if action == "delete":
        return Line(f"#{body.discussion.num} removed" if body.discussion else "Discussion removed", created_at)
    if discussion is None:
        return None
    number, path = f"#{discussion.num}", f"/discussions/{discussion.num}"
    if scope == "discussion.comment":
        text = f"Comment in {number}" if action == "create" else f"Comment changed in {number}"
    else:
        text = f"{number} opened" if action == "create" else f"{number} changed"
    return Line(text, created_at, path, discussion.title)


def _line_of_refs(created_at: int, refs: list[RefChange]) -> Line:
    if len(refs) != 1:
        return Line("Several branches or tags changed" if refs else "Branches or tags changed", created_at)
    (change,) = refs
    verb = "created" if change.old_sha is None else "deleted" if change.new_sha is None else ""
    if number := pull_request_of(change.ref):
        return Line(f"New commits in #{number}", created_at, f"/discussions/{number}" if change.new_sha else "")
    name = change.ref.removeprefix(_BRANCH).removeprefix(_TAG)
    if change.ref.startswith(_TAG):
        return Line(f"Tag {name} {verb or 'moved'}", created_at)
    if verb:
        return Line(f"Branch {name} {verb}", created_at)
    return Line(f"New commits on {name}", created_at, f"/commits/{quote(name, safe='')}")
