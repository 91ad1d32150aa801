"""Who sees a repo, as requests say it: by `visibility`, or by `private` as older clients do."""

from typing import Literal

from hubgate.server.errors import Unprocessable
from hubgate.server.hub.repos.model import RepoType

Visibility = Literal["public", "private", "protected"]


def is_private(kind: RepoType, private: bool | None, visibility: Visibility | None) -> bool | None:
    """None where nothing was said. The files of a protected space are hidden while its application is not; nothing
    runs here, so it is a private one. Anything else would show what was asked to be hidden.
    """
    if visibility == "protected" and kind is not RepoType.SPACE:
        raise Unprocessable(f"Only a space can be protected, not a {kind.value}.")
    said = None if visibility is None else visibility != "public"
    if said is not None and private is not None and said != private:
        raise Unprocessable("private and visibility contradict each other.")
    return private if said is None else said
