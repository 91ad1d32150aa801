"""The author of a commit over HTTP. Users' e-mail addresses are not written into a history that anyone may clone."""

from urllib.parse import urlsplit

from hubgate.server.accounts.model import User
from hubgate.server.hub.git.writes import Author


def author_of(user: User, base_url: str) -> Author:
    return Author(user.name, f"{user.name}@users.noreply.{urlsplit(base_url).hostname}")
