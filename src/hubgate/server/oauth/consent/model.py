"""A consent, and what a request would need of it. Pure."""

from collections.abc import Collection
from dataclasses import dataclass


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
