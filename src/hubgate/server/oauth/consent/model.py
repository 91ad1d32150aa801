"""A consent, what a request would need of it, and the app it is for. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from hubgate.server.oauth.redirects import shown_host

# Of a face (apps/model.py): the name, then the addresses.
_HALF = 16

# Scopes that say who the user is. A sign-in cannot leave them out, and no organization is granted with them.
IDENTITY = frozenset({"openid", "profile", "email"})


@dataclass(frozen=True, slots=True)
class Consent:
    id: str
    user_id: str
    client_id: str
    scopes: frozenset[str]
    # Those approved for tokens that are for other servers (RFC 8707).
    other_scopes: frozenset[str]
    # By id, each with the scopes it was granted with.
    organizations: Mapping[str, frozenset[str]]
    face: str
    app_name: str
    created_at: int
    updated_at: int
    last_used_at: int | None

    def covers(self, scopes: Collection[str], organizations: Collection[str], face: str, elsewhere: bool) -> bool:
        """Whether nothing new is asked, by an app that still looks as it did; `elsewhere` is for other servers."""
        there = set(scopes) - IDENTITY
        return (
            self.face == face
            and (self.other_scopes if elsewhere else self.scopes) >= set(scopes)
            and all(org in self.organizations and self.organizations[org] >= there for org in organizations)
        )

    def was_renamed(self, face: str) -> bool:
        return self.face[:_HALF] != face[:_HALF]

    def was_moved(self, face: str) -> bool:
        """Whether its answers go elsewhere."""
        return self.face[_HALF:] != face[_HALF:]


@dataclass(frozen=True, slots=True)
class Connected:
    """A consent as its user sees it, with what is registered of the app; nothing is, where a document describes it."""

    consent: Consent
    redirect_uris: tuple[str, ...] = ()
    app_scopes: frozenset[str] = frozenset()
    required_scopes: frozenset[str] = frozenset()

    @property
    def client_id(self) -> str:
        return self.consent.client_id

    @property
    def is_document(self) -> bool:
        return self.client_id.startswith(("https://", "http://"))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Where it lives: its document's host, or those it is answered at. None for an app that signs in by code."""
        if self.is_document:
            return (urlsplit(self.client_id).netloc.lower(),)
        return tuple(dict.fromkeys(map(shown_host, self.redirect_uris)))

    @property
    def may_hold(self) -> frozenset[str]:
        """What its user can let it do: what it asked for, and what it says it may ask for."""
        return self.consent.scopes | self.app_scopes
