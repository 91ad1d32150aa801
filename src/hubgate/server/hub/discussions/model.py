"""Discussions; one with a base is a pull request."""

import msgspec


class Discussion(msgspec.Struct, frozen=True):
    """The order of the fields is that of the store's columns."""

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
        """Where its commits are, if it is a pull request."""
        return f"refs/pr/{self.num}"

    @property
    def takes_commits(self) -> bool:
        return self.base is not None and self.status in ("draft", "open")
