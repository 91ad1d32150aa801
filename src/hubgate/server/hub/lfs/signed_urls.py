"""Signed URLs that expire: existing clients transfer large files without a token.

The signature covers the operation, the repo, the file, its size and the expiry.
"""

from urllib.parse import urlencode

import msgspec

from hubgate.server.clock import SECOND
from hubgate.server.errors import Forbidden
from hubgate.server.hub.context import Repos
from hubgate.server.secret import ServerSecret

# Long enough for a large file on a slow connection; only the start of an upload must be before the expiry.
UPLOAD_VALIDITY = 6 * 3600 * SECOND
# The longest time that a URL works after read permission was revoked; git-lfs requests a new URL after expiry.
DOWNLOAD_VALIDITY_SECONDS = 900
_PURPOSE = "lfs-link"


class UrlGrant(msgspec.Struct, frozen=True):
    """The permission that a signed URL grants. `part` is 0 for a single upload."""

    # "upload", "part", "complete", "verify" or "download".
    verb: str
    repo_id: str
    oid: str
    size: int
    expires_at: int
    part: int = 0
    # The user id of a guest, whose file does not belong to the owner; "" for a writer.
    guest: str = ""

    @property
    def _signed(self) -> bytes:
        """The signed text. `guest` is omitted if empty, so that URLs from before this field existed stay valid."""
        fields = msgspec.structs.astuple(self)
        return "\n".join(map(str, fields if self.guest else fields[:-1])).encode()

    def url(self, repos: Repos) -> str:
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
            mac_given = bytes.fromhex(signature)
        except ValueError:
            mac_given = b""
        if not secret.mac_matches(_PURPOSE, self._signed, mac_given):
            raise Forbidden("This URL was altered. Request a new one.")
        if now >= self.expires_at:
            raise Forbidden("This URL has expired. Request a new one.")
