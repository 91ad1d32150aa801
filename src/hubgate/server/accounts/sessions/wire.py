"""The wire format of a session, for the API and a user's export, without its cookie."""

import msgspec

from hubgate.server.accounts.sessions import model
from hubgate.server.clock import iso


class SessionInfo(msgspec.Struct, rename="camel"):
    id: str
    created_at: str
    last_used_at: str
    ip: str
    user_agent: str


def described(session: model.Session) -> SessionInfo:
    return SessionInfo(
        id=session.id,
        created_at=iso(session.created_at),
        last_used_at=iso(session.last_used_at),
        ip=session.ip,
        user_agent=session.user_agent,
    )
