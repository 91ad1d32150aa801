"""The visibility in a request: `visibility`, or `private` from older clients."""

from typing import Literal

from hubgate.server.errors import Unprocessable
from hubgate.server.hub.repos.model import RepoType

Visibility = Literal["public", "private", "protected"]


def is_private(kind: RepoType, private: bool | None, visibility: Visibility | None) -> bool | None:
    """Return the requested privacy, None if none was requested. A protected space hides its files but not its running
    app. Nothing runs here, so a protected space is private: anything else would show the files.
    """
    if visibility == "protected" and kind is not RepoType.SPACE:
        raise Unprocessable(f"Only a space can be protected, not a {kind.value}.")
    from_visibility = None if visibility is None else visibility != "public"
    if from_visibility is not None and private is not None and from_visibility != private:
        raise Unprocessable("private and visibility contradict each other.")
    return private if from_visibility is None else from_visibility
