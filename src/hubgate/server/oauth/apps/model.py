"""An app, registered here or described by a metadata document."""

import hashlib
import json

from msgspec import Struct, field
from msgspec.structs import replace

from hubgate.server.oauth.keys.model import DEFAULT_ALGORITHM
from hubgate.server.oauth.redirects import EXACT, shown_host

DEFAULT_LIFETIME = 8 * 60 * 60
LONGEST_LIFETIME = 30 * 24 * 60 * 60
LONGEST_OVERLAP = 7 * 24 * 60 * 60


class ExchangeSettings(Struct, frozen=True):
    """Token exchange settings of an organization's app. None means no limit."""

    privileged: bool = False
    duration: int = DEFAULT_LIFETIME
    scopes: tuple[str, ...] | None = None
    roles: tuple[str, ...] | None = None
    networks: tuple[str, ...] | None = None
    daily_quota: int | None = None
    paused: bool = False
    # Tokens exchanged before this are invalid; set when the privilege or the pause changes.
    since: int = 0

    def restarted(self, now: int) -> "ExchangeSettings":
        """A copy that invalidates tokens exchanged so far. `since` always increases, even if clocks differ."""
        return replace(self, since=max(now, self.since + 1))


class App(Struct, frozen=True):
    """An OAuth client.

    A registered app has an `owner_id` or an `org_id`. An app that registered itself, a metadata document app or a
    configured CLI has neither.
    """

    client_id: str
    name: str
    homepage: str = ""
    redirect_uris: tuple[str, ...] = ()
    # Where the app may send users after it signed them out of the hub.
    post_logout_redirect_uris: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    required_scopes: tuple[str, ...] = ()
    # The scopes of a request without `scope`; None for all.
    default_scopes: tuple[str, ...] | None = None
    extra_scopes: tuple[str, ...] = ()
    confidential: bool = False
    token_lifetime: int = DEFAULT_LIFETIME
    require_pkce: bool = False
    refresh_tokens: bool = False
    # Whether ID tokens and userinfo have the claim `groups`.
    groups_claim: bool = False
    id_token_signed_response_alg: str = DEFAULT_ALGORITHM
    redirect_match: str = EXACT
    owner_id: str | None = None
    org_id: str | None = None
    created_at: int = 0
    exchange: ExchangeSettings = field(default_factory=ExchangeSettings)
    # The host of the metadata document; empty for other apps.
    document_host: str = ""
    # The app registered itself, without an account (oauth/registration/).
    self_registered: bool = False
    # A CLI that the operator configured for the device flow.
    first_party: bool = False

    @property
    def is_registered(self) -> bool:
        """Whether the app is stored in the database."""
        return not self.document_host and not self.first_party

    @property
    def needs_pkce(self) -> bool:
        return not self.confidential or self.require_pkce

    @property
    def face(self) -> str:
        """A digest of the app as users see it: half of it for the name, half for the redirect targets.

        For an app with a metadata document, and for one that registered itself, every full URI counts, because nobody
        vouches for the app; for another app only the hosts, which is what the consent page shows.
        """
        uris = self.redirect_uris
        targets = set(uris) if self.document_host or self.self_registered else set(map(shown_host, uris))
        return _digest(self.name) + _digest(json.dumps(sorted(targets)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
