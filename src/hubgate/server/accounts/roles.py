"""The words for what a member of an organization, and a personal token, may do. `access` judges by them."""

from enum import Enum, IntEnum


class Role(IntEnum):
    """A member's role in an organization. Each includes the ones before it."""

    READ = 1
    CONTRIBUTOR = 2
    WRITE = 3
    ADMIN = 4

    @property
    def label(self) -> str:
        """The wire spelling."""
        return self.name.lower()

    @classmethod
    def parse(cls, label: str) -> "Role":
        for role in cls:
            if role.label == label:
                return role
        raise ValueError(f"{label!r} is not a role.")


# By stored value: a look-up here costs a tenth of asking the enumeration.
ROLES = {role.value: role for role in Role}


class TokenRole(Enum):
    """What a personal token may do: all its user may read, or nearly all its user may do."""

    READ = "read"
    WRITE = "write"


TOKEN_ROLES = {role.value: role for role in TokenRole}
