"""Discussions. A discussion with a base is a pull request."""

import msgspec

from hubgate.server.hub.repos.model import PULL_REQUESTS


class Discussion(msgspec.Struct, frozen=True):
    """A discussion's row. The order of the fields is that of the store's columns."""

    id: str
    repo_id: str
    num: int
    title: str
    description: str
    # "draft", "open", "closed" or "merged".
    status: str
    base: str | None
    author_id: str
    created_at: int
    closed_by: str | None = None

    @property
    def ref(self) -> str:
        """The ref of the commits, if the discussion is a pull request."""
        return f"{PULL_REQUESTS}{self.num}"

    @property
    def accepts_commits(self) -> bool:
        return self.base is not None and self.status in ("draft", "open")
