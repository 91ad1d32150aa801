"""What a browser takes along to the sign-in page and back: the session that did not count, or the one to stay with.

Under a MAC: an app that could write one would get around prompt=login and max_age. Signing in always starts another
session, so whoever comes back with another one than the mark names has just signed in.
"""

import base64
import binascii
from dataclasses import dataclass

from hubgate.server.clock import HOUR
from hubgate.server.secret import ServerSecret

PARAMETER = "_mark"
# After that an address out of the history counts for nothing.
LASTS = HOUR
_PURPOSE = "sign-in mark"
_LEFT, _KEPT = "left", "kept"


@dataclass(frozen=True)
class Mark:
    """`session_id` is empty where nobody was signed in."""

    session_id: str
    made_at: int
    kept: bool = False

    def is_left_behind(self, session_id: str) -> bool:
        """Whether that session began after the mark was made."""
        return not self.kept and session_id != self.session_id

    def is_kept(self, session_id: str) -> bool:
        """Whether the user chose to go on with that session."""
        return self.kept and session_id == self.session_id


def write(mark: Mark, secret: ServerSecret) -> str:
    said = f"{_KEPT if mark.kept else _LEFT}.{mark.made_at}.{mark.session_id}"
    mac = base64.urlsafe_b64encode(secret.mac(_PURPOSE, said.encode())).rstrip(b"=").decode()
    return f"{said}.{mac}"


def read(text: str, secret: ServerSecret, now: int) -> Mark | None:
    """None unless we wrote it, and lately."""
    said, _, mac = text.rpartition(".")
    try:
        given = base64.urlsafe_b64decode(mac + "=" * (-len(mac) % 4))
    except (binascii.Error, ValueError):
        return None
    if not secret.mac_matches(_PURPOSE, said.encode(), given):
        return None
    kind, made_at, session_id = said.split(".")
    mark = Mark(session_id, int(made_at), kind == _KEPT)
    return mark if now - mark.made_at <= LASTS else None
