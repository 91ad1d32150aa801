"""Signed URLs that expire: existing clients transfer large files without a token.

The signature covers the operation, the repo, the file, its size and the expiry.
"""

from urllib.parse import urlencode

import msgspec

from hubgate.server.errors import Forbidden
from hubgate.server.hub.context import Repos
from hubgate.server.secret import ServerSecret

# The start of each request must be before the expiry. Clients request the URLs of all parts and of many files at once,
# and begin anew if one has expired, so the validity is long enough to send all of them on a slow connection.
_UPLOAD_VALIDITY_SECONDS = 6 * 3600
_SLOWEST_BYTES_PER_SECOND = 50_000
_LONGEST_UPLOAD_VALIDITY_SECONDS = 7 * 24 * 3600
# The longest time that a URL works after read permission was revoked; git-lfs requests a new URL after expiry.
DOWNLOAD_VALIDITY_SECONDS = 900
_PURPOSE = "lfs-link"


def upload_validity_seconds(size: int) -> int:
    """How long the URLs of an upload of so many bytes are valid."""
    return min(_UPLOAD_VALIDITY_SECONDS + size // _SLOWEST_BYTES_PER_SECOND, _LONGEST_UPLOAD_VALIDITY_SECONDS)


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
            raise Forbidden("This URL has expired. Request a new one: start the upload or download again.")
