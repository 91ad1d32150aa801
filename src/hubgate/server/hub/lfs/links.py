"""Addresses that carry their own permission for a while: existing clients send large files without a token.

What is signed is everything that matters: what may be done, in which repo, with which file, of which size, until when.
"""

from urllib.parse import urlencode

import msgspec

from hubgate.server.clock import SECOND
from hubgate.server.errors import Forbidden
from hubgate.server.hub.context import Repos
from hubgate.server.secret import ServerSecret

# Long enough for a large file on a slow line: what counts is when the upload begins.
LASTS = 6 * 3600 * SECOND
# Who loses the right to read keeps a link for no longer than this; git-lfs asks for a new one when it has run out.
DOWNLOAD_SECONDS = 900
_PURPOSE = "lfs-link"


class Grant(msgspec.Struct, frozen=True):
    """`part` is 0 for a file in one piece."""

    # "upload", "part", "complete", "verify" or "download".
    verb: str
    repo_id: str
    oid: str
    size: int
    expires_at: int
    part: int = 0
    # 1 where only a guest sends it, so that it is not the owner's.
    guest: int = 0

    @property
    def _signed(self) -> bytes:
        """Without the last field where it is 0: an address from before it existed stays good."""
        fields = msgspec.structs.astuple(self)
        return "\n".join(map(str, fields if self.guest else fields[:-1])).encode()

    def address(self, repos: Repos) -> str:
        query = {
            "size": self.size,
            "expires": self.expires_at,
            "part": self.part,
            **({"guest": self.guest} if self.guest else {}),
            "signature": repos.secret.mac(_PURPOSE, self._signed).hex(),
        }
        return f"{repos.base_url}/lfs/{self.verb}/{self.repo_id}/{self.oid}?{urlencode(query)}"

    def check(self, secret: ServerSecret, signature: str, now: int) -> None:
        try:
            given = bytes.fromhex(signature)
        except ValueError:
            given = b""
        if not secret.mac_matches(_PURPOSE, self._signed, given):
            raise Forbidden("This address was changed. Ask for a new one.")
        if now >= self.expires_at:
            raise Forbidden("This address is no longer good. Ask for a new one.")
