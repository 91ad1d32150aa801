"""The end of an address, `{revision}/{path}`: what it means depends on which refs exist."""

from collections.abc import Mapping

from msgspec import Struct

from hubgate.server.hub.repos.model import MAIN, is_pull_request, pull_request_of

# A branch name with more segments must be percent-encoded.
_MAX_SEGMENTS = 5


class PathAtRevision(Struct, frozen=True):
    """A revision as written in an address, a path in it, and name and id of the ref that the revision names, if any."""

    rev: str
    path: str
    ref: tuple[str, str] | None


class RevisionPath(Struct, frozen=True):
    """The end of an address, before it is known which refs exist. `options`, by the name of a ref and in order of
    precedence, are the revision and path that the address means if that ref exists.
    """

    options: Mapping[str, tuple[str, str]]
    without_ref: tuple[str, str]

    def at(self, found: tuple[str, str] | None) -> PathAtRevision:
        """The revision and path; `found` is the first of the options that exists."""
        return PathAtRevision(*(self.options[found[0]] if found else self.without_ref), found)


def parse_revision_path(rest: str, first: str) -> RevisionPath:
    """Parse the end of an address. Both revision and path may contain slashes that were not percent-encoded.

    The revision is refs/<kind>/<name>, else the longest existing ref, else the first segment. But a first segment with
    an encoded slash, passed as `first`, is the whole revision: the client marked where it ends.
    """
    parts = rest.split("/")
    if "/" in first:
        splits = [(first, rest[len(first) + 1 :])]
    elif len(parts) >= 3 and parts[0] == "refs" and parts[1] in ("pr", "convert", "heads", "tags"):
        splits = [_split(parts, 3)]
    else:
        splits = [_split(parts, end) for end in range(min(len(parts), _MAX_SEGMENTS), 0, -1)]
    return RevisionPath({ref: split for split in splits for ref in candidate_refs(split[0])}, splits[-1])


def _split(parts: list[str], end: int) -> tuple[str, str]:
    return "/".join(parts[:end]), "/".join(parts[end:])


def candidate_refs(text: str) -> list[str]:
    """The refs that a revision may name, in order of precedence."""
    if text == "HEAD":
        return [MAIN]
    if text.startswith("refs/"):
        return [text] if not is_pull_request(text) or pull_request_of(text) else []
    return [f"refs/heads/{text}", f"refs/tags/{text}"]
