"""CSRF protection: a form is accepted only from a page that the hub rendered for the same browser.

Each form carries a hidden field: a MAC, under the server key, of a cookie that only this browser has. For a signed-in
user that is the session cookie, so a field copied from one session is useless in another; before sign-in, it is a
separate visitor cookie. Nothing is stored.
"""

import base64
import binascii
import secrets

from msgspec import Struct

from hubgate.server.errors import Forbidden
from hubgate.server.http.cookies import SESSION, VISITOR, is_duplicated, read_cookie, set_cookie
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.secret import ServerSecret

CSRF_FIELD = "csrf"
_PURPOSE = "csrf"
_REFUSAL = "This form has expired or was sent from another site. Go back, reload the page and send it again."


class Csrf(Struct, frozen=True):
    secret: ServerSecret
    base_url: str

    @property
    def secure(self) -> bool:
        return self.base_url.startswith("https:")

    def field_for(self, request: HubRequest) -> tuple[str, str | None]:
        """The value of the hidden field, and a visitor cookie to set if the browser does not have one."""
        known = self._bound_cookie(request)
        cookie = known or secrets.token_urlsafe(24)
        mac = self.secret.mac(_PURPOSE, cookie.encode())
        return base64.urlsafe_b64encode(mac).decode(), None if known else cookie

    def _is_same_origin(self, origin: str | None, host: str) -> bool:
        """Whether the origin is the public address or the host that the browser used (a hub may have several names)."""
        return origin is None or origin == self.base_url or origin.partition("://")[2] == host

    def _bound_cookie(self, request: HubRequest) -> str | None:
        names = (SESSION, VISITOR)
        if any(is_duplicated(request, name, secure=self.secure) for name in names):
            # Of two cookies with the same name, one was planted.
            return None
        found = (read_cookie(request, name, secure=self.secure) for name in names)
        return next((cookie for cookie in found if cookie), None)

    def set_visitor_cookie(self, response: Response, value: str) -> None:
        set_cookie(response, VISITOR, value, secure=self.secure)

    def check(self, request: HubRequest, given: str) -> None:
        # Reject requests that the browser itself marks as coming from another origin.
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Forbidden(_REFUSAL)
        if not self._is_same_origin(request.headers.get("origin"), request.headers.get("host", "")):
            raise Forbidden(_REFUSAL)
        cookie = self._bound_cookie(request)
        if cookie is None or not self.secret.mac_matches(_PURPOSE, cookie.encode(), _decoded(given)):
            raise Forbidden(_REFUSAL)


def _decoded(given: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(given.encode())
    except (binascii.Error, ValueError):
        return b""
