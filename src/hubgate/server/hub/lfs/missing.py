"""The error for content that should be stored and is not."""

from hubgate.server.errors import NotFound


class ContentMissing(NotFound):
    """A file is in a repo, but its content was lost, or is being deleted with the repo."""

    code = "EntryNotFound"

    def __init__(self) -> None:
        super().__init__("The content of this file is missing.")
