"""The sign-in mark: a URL parameter that tracks whether the user has signed in for an authorization request.

It names the session that the user had before the sign-in page, and whether the user chose to continue with it. A MAC
binds the mark to its request: a forged mark would bypass prompt=login and max_age. But anyone can obtain a mark while
signed out or signed in to another account, and use it in another browser, so a mark only proves when the request was
sent. Every sign-in starts a new session: only a session that began after the mark was created is a sign-in for the
request.
"""

import base64
import binascii
import json
from collections.abc import Iterable

from msgspec import Struct

from hubgate.server.accounts.sessions.model import Session
from hubgate.server.clock import HOUR
from hubgate.server.oauth.authorize.rules import PARAMETERS
from hubgate.server.secret import ServerSecret

PARAMETER = "_mark"
# Short, so that a URL from the browser history does not work later.
LIFETIME = HOUR
_PURPOSE = "sign-in mark"
_NEW_SESSION, _SAME_SESSION = "left", "kept"

Pairs = Iterable[tuple[str, str]]


class SignInMark(Struct, frozen=True):
    """The session before the sign-in page; `session_id` is empty if nobody was signed in.

    `same_session` is set if the user chose to continue with that session.
    """

    session_id: str
    created_at: int
    same_session: bool = False

    def is_new_session(self, session: Session) -> bool:
        """Whether the session is new: it began after the mark was created."""
        return not self.same_session and session.id != self.session_id and session.created_at >= self.created_at

    def is_same_session(self, session: Session) -> bool:
        """Whether the user chose to continue with the session."""
        return self.same_session and session.id == self.session_id


def write(mark: SignInMark, request: Pairs, secret: ServerSecret) -> str:
    """The mark as text, with its MAC. `request` has the app's parameters, with or without a mark."""
    content = f"{_SAME_SESSION if mark.same_session else _NEW_SESSION}.{mark.created_at}.{mark.session_id}"
    mac = base64.urlsafe_b64encode(secret.mac(_PURPOSE, _message(content, request))).rstrip(b"=").decode()
    return f"{content}.{mac}"


def read(text: str, request: Pairs, secret: ServerSecret, now: int) -> SignInMark | None:
    """Verify a mark; None if it is forged, expired or for another request."""
    content, _, mac = text.rpartition(".")
    try:
        given = base64.urlsafe_b64decode(mac + "=" * (-len(mac) % 4))
    except (binascii.Error, ValueError):
        return None
    if not secret.mac_matches(_PURPOSE, _message(content, request), given):
        return None
    kind, created_at, session_id = content.split(".")
    mark = SignInMark(session_id, int(created_at), kind == _SAME_SESSION)
    return mark if now - mark.created_at <= LIFETIME else None


def _message(content: str, request: Pairs) -> bytes:
    return json.dumps([content, sorted(pair for pair in request if pair[0] in PARAMETERS)]).encode()
