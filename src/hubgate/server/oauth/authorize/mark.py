"""What a browser takes along to the sign-in page and back: the session that did not count, or the one to stay with.

Under a MAC, with the request it was made for: whoever could write one would get around prompt=login and max_age. But
anyone can have one made, signed out or as somebody else, and take it to another browser; so it says no more than when
the request was made. Signing in always starts another session: only one that began since then is a sign-in for it.
"""

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass

from hubgate.server.accounts.sessions.model import Session
from hubgate.server.clock import HOUR
from hubgate.server.oauth.authorize.rules import PARAMETERS
from hubgate.server.secret import ServerSecret

PARAMETER = "_mark"
# After that an address out of the history counts for nothing.
LASTS = HOUR
_PURPOSE = "sign-in mark"
_LEFT, _KEPT = "left", "kept"

Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Mark:
    """`session_id` is empty where nobody was signed in."""

    session_id: str
    made_at: int
    kept: bool = False

    def is_left_behind(self, session: Session) -> bool:
        """Whether that session began after the mark was made."""
        return not self.kept and session.id != self.session_id and session.created_at >= self.made_at

    def is_kept(self, session: Session) -> bool:
        """Whether the user chose to go on with that session."""
        return self.kept and session.id == self.session_id


def write(mark: Mark, request: Pairs, secret: ServerSecret) -> str:
    """`request` is what an app sent, with or without a mark."""
    said = f"{_KEPT if mark.kept else _LEFT}.{mark.made_at}.{mark.session_id}"
    mac = base64.urlsafe_b64encode(secret.mac(_PURPOSE, _message(said, request))).rstrip(b"=").decode()
    return f"{said}.{mac}"


def read(text: str, request: Pairs, secret: ServerSecret, now: int) -> Mark | None:
    """None unless we wrote it for this request, and lately."""
    said, _, mac = text.rpartition(".")
    try:
        given = base64.urlsafe_b64decode(mac + "=" * (-len(mac) % 4))
    except (binascii.Error, ValueError):
        return None
    if not secret.mac_matches(_PURPOSE, _message(said, request), given):
        return None
    kind, made_at, session_id = said.split(".")
    mark = Mark(session_id, int(made_at), kind == _KEPT)
    return mark if now - mark.made_at <= LASTS else None


def _message(said: str, request: Pairs) -> bytes:
    return json.dumps([said, sorted(pair for pair in request if pair[0] in PARAMETERS)]).encode()
