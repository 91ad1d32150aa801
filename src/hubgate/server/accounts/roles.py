"""Roles of members in organizations and of personal tokens. `access` defines their permissions."""

from enum import Enum, IntEnum
from functools import cached_property


class Role(IntEnum):
    """A member's role in an organization. Each role includes the roles before it."""

    READ = 1
    CONTRIBUTOR = 2
    WRITE = 3
    ADMIN = 4

    @cached_property
    def label(self) -> str:
        """The wire spelling."""
        return self.name.lower()

    @classmethod
    def parse(cls, label: str) -> "Role":
        for role in cls:
            if role.label == label:
                return role
        raise ValueError(f"{label!r} is not a role.")


# By stored value: a lookup here takes a tenth of the time of Role(value).
ROLES = {role.value: role for role in Role}


class TokenRole(Enum):
    """The role of a personal token: WRITE allows nearly everything that its user may do, READ only reading, and
    FINE_GRAINED only what its limits name (`accounts/tokens/limits.py`).
    """

    READ = "read"
    WRITE = "write"
    FINE_GRAINED = "fineGrained"


TOKEN_ROLES = {role.value: role for role in TokenRole}
