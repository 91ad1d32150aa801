"""What the use cases of chunked storage share: the sender of a request, and names of objects."""

import secrets

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.clock import SECOND
from hubgate.server.hub.repos.model import Repo

# The first segment of the keys of xorbs.
XORBS = "xorbs"


class Sender(Struct, frozen=True):
    """A user who sends files to a repo. The repo is the one that the sender's permission was checked on."""

    identity: Identity
    repo: Repo

    @property
    def user_id(self) -> str:
        return self.identity.user_id or ""

    @property
    def is_guest(self) -> bool:
        """Whether the user may only open pull requests: uploads are charged to the user, not to the owner."""
        return not decide(self.identity, Action.REPO_WRITE, self.repo.as_resource()).allowed

    @property
    def reads_repo(self) -> bool:
        """Whether the user may read the repo's files: users may open pull requests in a gated repo without access."""
        return decide(self.identity, Action.REPO_READ_CONTENT, self.repo.as_resource()).allowed


def new_object_key(xorb: str, now: int) -> str:
    """A key for an object with a xorb, never used before: two uploads of a xorb may be compressed differently, and
    deleting one object must not delete another.
    """
    return f"{XORBS}/{xorb[:2]}/{xorb[2:4]}/{xorb}.{now // SECOND:x}.{secrets.token_hex(8)}"
