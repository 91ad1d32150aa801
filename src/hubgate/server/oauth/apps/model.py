"""An app as the flows see it, whether it was registered here or describes itself at an address."""

import hashlib
import json
from dataclasses import dataclass, field

from hubgate.server.oauth.redirects import EXACT, shown_host

DEFAULT_LIFETIME = 8 * 60 * 60
LONGEST_LIFETIME = 30 * 24 * 60 * 60
LONGEST_OVERLAP = 7 * 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Exchange:
    """What an organization's admins allow its app to exchange tokens for. None means no limit."""

    privileged: bool = False
    duration: int = DEFAULT_LIFETIME
    scopes: tuple[str, ...] | None = None
    roles: tuple[str, ...] | None = None
    networks: tuple[str, ...] | None = None
    daily_quota: int | None = None
    paused: bool = False
    # Tokens exchanged before this are dead: when it was paused, or lost the privilege.
    since: int = 0


@dataclass(frozen=True, slots=True)
class App:
    """A registered app has an `owner_id` or an `org_id`. One known by its metadata document has neither, nor has a CLI
    that the operator configured.
    """

    client_id: str
    name: str
    homepage: str = ""
    redirect_uris: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    required_scopes: tuple[str, ...] = ()
    # What a request without a scope asks for, where that is not all of them.
    default_scopes: tuple[str, ...] | None = None
    extra_scopes: tuple[str, ...] = ()
    confidential: bool = False
    token_lifetime: int = DEFAULT_LIFETIME
    require_pkce: bool = False
    refresh_tokens: bool = False
    redirect_match: str = EXACT
    owner_id: str | None = None
    org_id: str | None = None
    created_at: int = 0
    exchange: Exchange = field(default_factory=Exchange)
    # The host of the document of an app that was never registered here.
    document_host: str = ""
    # A device-flow CLI the operator configured.
    first_party: bool = False

    @property
    def is_registered(self) -> bool:
        """Whether it has a row here."""
        return not self.document_host and not self.first_party

    @property
    def needs_pkce(self) -> bool:
        return not self.confidential or self.require_pkce

    @property
    def face(self) -> str:
        """Changes with what a user judged it by: the first half with its name, the second with where its answers go.

        Nobody vouches for an app that is known only by its document, so there every address counts; of a registered
        app the hosts do, which is what consent shows of them.
        """
        uris = self.redirect_uris
        goes_to = set(uris) if self.document_host else set(map(shown_host, uris))
        return _digest(self.name) + _digest(json.dumps(sorted(goes_to)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
