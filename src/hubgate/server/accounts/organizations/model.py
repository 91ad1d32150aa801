"""Members and open invitations."""

from dataclasses import dataclass

from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import Role


@dataclass(frozen=True, slots=True)
class Member:
    user: User
    role: Role
    joined_at: int


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation to the organization `org_id`, or to the hub if None. Either `email` or `user_id` is the invitee."""

    id: str
    org_id: str | None
    email: str | None
    user_id: str | None
    role: Role
    invited_by: str | None
    created_at: int
    expires_at: int
