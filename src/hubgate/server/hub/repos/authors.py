"""Who a commit made over HTTP is by. A user's e-mail address is not written into a history that anyone may clone."""

from urllib.parse import urlsplit

from hubgate.server.accounts.model import User
from hubgate.server.hub.git.writing import Author


def author_of(user: User, base_url: str) -> Author:
    return Author(user.name, f"{user.name}@users.noreply.{urlsplit(base_url).hostname}")
