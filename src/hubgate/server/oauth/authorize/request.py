"""An app's request to sign a user in, as it was understood."""

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from hubgate.server.errors import BadRequest
from hubgate.server.http.oauth_text import oauth_text
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.consent.wish import Wish
from hubgate.server.oauth.redirects import with_parameters

QUERY, FORM_POST = "query", "form_post"
RESPONSE_MODES = (QUERY, FORM_POST)


@dataclass(frozen=True)
class ReturnAddress:
    """Where the answer goes, once it is known that the app registered it."""

    redirect_uri: str
    state: str | None
    response_mode: str
    issuer: str

    def members(self, **answer: str) -> dict[str, str]:
        """With `iss`, so that an app that talks to several hubs cannot be mixed up (RFC 9207)."""
        state = {"state": self.state} if self.state is not None else {}
        return {**answer, **state, "iss": self.issuer}

    def address(self, **answer: str) -> str:
        # A space as %20: not every app on a device reads a plus as one.
        return with_parameters(self.redirect_uri, urlencode(self.members(**answer), quote_via=quote))


class StoppedHere(BadRequest):
    """A page of ours, status 400: the browser is never sent to an address nobody vouched for.

    `client_id` is what the request named, known here or not.
    """

    def __init__(self, message: str, *, code: str, client_id: str = "", about: str = "") -> None:
        super().__init__(message, code=code)
        self.client_id, self.about = client_id, about


class SentBack(Exception):
    """An error the app is told, at the address it registered. For `about` see OAuthRefused."""

    def __init__(self, to: ReturnAddress, error: str, description: str, about: str = "") -> None:
        super().__init__(description)
        self.to, self.error, self.description, self.about = to, error, oauth_text(description), about


@dataclass(frozen=True)
class AuthorizationRequest:
    app: App
    to: ReturnAddress
    # Said by the app, not only known from its registration: then it has to be said again with the code.
    redirect_uri_sent: bool
    scopes: tuple[str, ...]
    organizations: tuple[str, ...]
    # The servers a token is requested for; none where it is for this hub.
    resources: tuple[str, ...]
    challenge: str | None
    nonce: str | None
    prompt: frozenset[str]
    max_age: int | None
    login_hint: str
    # The user an ID token of ours named, if one was sent.
    expected_user: str | None

    @property
    def wish(self) -> Wish:
        return Wish(self.app, self.scopes, self.organizations, self.to.redirect_uri, self.resources)
