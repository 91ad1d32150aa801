"""A consent, and what a request would need of it. Pure."""

from collections.abc import Collection
from dataclasses import dataclass

# Of a face (apps/model.py): the name, then the addresses.
_HALF = 16


@dataclass(frozen=True, slots=True)
class Consent:
    id: str
    user_id: str
    client_id: str
    scopes: frozenset[str]
    organizations: frozenset[str]
    face: str
    app_name: str
    created_at: int
    updated_at: int
    last_used_at: int | None

    def covers(self, scopes: Collection[str], organizations: Collection[str], face: str) -> bool:
        """Whether nothing new is asked, by an app that still looks as it did."""
        return self.face == face and self.scopes >= set(scopes) and self.organizations >= set(organizations)

    def was_renamed(self, face: str) -> bool:
        return self.face[:_HALF] != face[:_HALF]

    def was_moved(self, face: str) -> bool:
        """Whether its answers go elsewhere."""
        return self.face[_HALF:] != face[_HALF:]
