"""Signed addresses of ranges of xorbs, which clients read without a token.

The signature covers the repo, the xorb, the range and the expiry. The range matters: a xorb may contain chunks of other
repos, which the reader of this one must not get.
"""

from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import astuple

from hubgate.server.clock import SECOND
from hubgate.server.errors import Forbidden
from hubgate.server.hub.context import Repos

# The longest time that an address works after read permission was revoked. Clients request a new one after 403.
VALIDITY_SECONDS = 900
_PURPOSE = "xorb-range"


class RangeGrant(Struct, frozen=True):
    """The permission to read the bytes from `start` up to, but not including, `end` of a stored xorb."""

    repo_id: str
    xorb_id: str
    start: int
    end: int
    expires_at: int

    @property
    def _signed(self) -> bytes:
        return "\n".join(map(str, astuple(self))).encode()

    def url(self, repos: Repos) -> str:
        query = {
            "start": self.start,
            "end": self.end,
            "expires": self.expires_at,
            "signature": repos.secret.mac(_PURPOSE, self._signed).hex(),
        }
        return f"{repos.base_url}/xet/ranges/{self.repo_id}/{self.xorb_id}?{urlencode(query)}"

    def check(self, repos: Repos, signature: str) -> None:
        try:
            given = bytes.fromhex(signature)
        except ValueError:
            given = b""
        if not repos.secret.mac_matches(_PURPOSE, self._signed, given):
            raise Forbidden("This address was altered. Request a new one.")
        if repos.clock() >= self.expires_at:
            raise Forbidden("This address has expired. Request a new one.")


def range_grant(repos: Repos, repo_id: str, xorb_id: str, start: int, end: int) -> RangeGrant:
    return RangeGrant(repo_id, xorb_id, start, end, repos.clock() + VALIDITY_SECONDS * SECOND)
