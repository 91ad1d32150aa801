"""Discussions and the rules for their texts. A discussion with a base is a pull request."""

import re

import msgspec

from hubgate.server.errors import Unprocessable
from hubgate.server.hub.repos.model import PULL_REQUESTS, Repo

MIN_TITLE_LENGTH, MAX_TITLE_LENGTH = 3, 200
MAX_TEXT_LENGTH = 65_536
# Users that one text can mention.
MAX_MENTIONS = 20

_MENTION = re.compile(r"(?<![\w@/.`-])@([A-Za-z0-9][A-Za-z0-9_.-]{0,41})")


class Discussion(msgspec.Struct, frozen=True):
    """A discussion's row. The order of the fields is that of the store's columns."""

    id: str
    repo_id: str
    num: int
    title: str
    # "draft", "open", "closed" or "merged".
    status: str
    base: str | None
    author_id: str
    created_at: int
    closed_by: str | None = None
    pinned: int = 0
    merge_sha: str | None = None
    updated_at: int = 0

    @property
    def ref(self) -> str:
        """The ref of the commits, if the discussion is a pull request."""
        return f"{PULL_REQUESTS}{self.num}"

    @property
    def is_pull_request(self) -> bool:
        return self.base is not None

    @property
    def is_open(self) -> bool:
        return self.status in ("draft", "open")

    @property
    def accepts_commits(self) -> bool:
        return self.base is not None and self.is_open

    @property
    def noun(self) -> str:
        return "discussion" if self.base is None else "pull request"


def page_path(repo: Repo, num: int) -> str:
    """The path of a discussion's page."""
    return f"{repo.path}/discussions/{num}"


def check_title(title: str) -> str:
    """Return the title with each run of whitespace replaced by one space; raise Unprocessable if its length is invalid.
    Invisible characters do not count towards the minimum: a list would show a link without text.
    """
    title = " ".join(title.split())
    if not MIN_TITLE_LENGTH <= _visible_length(title) <= len(title) <= MAX_TITLE_LENGTH:
        raise Unprocessable(f"A title must have {MIN_TITLE_LENGTH} to {MAX_TITLE_LENGTH} characters.")
    return title


def title_of_commit(summary: str) -> str:
    """The title of a pull request that is opened with a commit, from the commit's summary."""
    title = " ".join(summary.split())[:MAX_TITLE_LENGTH]
    return title if _visible_length(title) else "(no title)"


def _visible_length(title: str) -> int:
    return sum(character.isprintable() for character in title)


def check_text(text: str) -> str:
    if len(text) > MAX_TEXT_LENGTH:
        raise Unprocessable(f"A description or comment may have at most {MAX_TEXT_LENGTH:,} characters.")
    return text


def check_comment(text: str) -> str:
    if not text.strip():
        raise Unprocessable("A comment cannot be empty.")
    return check_text(text)


def mentions_in(text: str) -> list[str]:
    """The lower-case names after `@` in a text, at most MAX_MENTIONS. There may be no users with these names."""
    names = (match[1].rstrip(".-_").lower() for match in _MENTION.finditer(text))
    return list(dict.fromkeys(names))[:MAX_MENTIONS]
