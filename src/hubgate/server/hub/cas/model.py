"""What the use cases of chunked storage share: the sender of a request, and stored xorbs."""

import secrets

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.hub.repos.model import Repo
from hubgate.server.objects.model import hashed_key

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


class StoredXorb(Struct, frozen=True):
    """A stored xorb: its id, its hash in the Xet protocol, and its bytes as stored."""

    id: str
    hash: str
    size: int

    @property
    def key(self) -> str:
        return key_of(self.id)


def new_xorb_id() -> str:
    return secrets.token_hex(16)


def key_of(xorb_id: str) -> str:
    """The key of the object with a xorb."""
    return hashed_key(XORBS, xorb_id)
