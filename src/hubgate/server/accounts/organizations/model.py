"""Members and open invitations."""

from msgspec import Struct

from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import Role


class Member(Struct, frozen=True):
    user: User
    role: Role
    joined_at: int


class Invitation(Struct, frozen=True):
    """An invitation to the organization `org_id`, or to the hub if None. Either `email` or `user_id` is the invitee."""

    id: str
    org_id: str | None
    email: str | None
    user_id: str | None
    role: Role
    invited_by: str | None
    created_at: int
    expires_at: int
