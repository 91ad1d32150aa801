"""A validated authorization request, its return address, and the errors of an invalid one."""

from urllib.parse import quote, urlencode

from msgspec import Struct

from hubgate.server.errors import BadRequest
from hubgate.server.http.render import oauth_text
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.consent.model import AccessRequest
from hubgate.server.oauth.redirects import with_parameters
from hubgate.server.oauth.resource_servers.model import ResourceServer

QUERY, FORM_POST = "query", "form_post"
RESPONSE_MODES = (QUERY, FORM_POST)


class ReturnAddress(Struct, frozen=True):
    """Where the response is sent: a redirect URI that the app has registered."""

    redirect_uri: str
    state: str | None
    response_mode: str
    issuer: str

    def parameters(self, **answer: str) -> dict[str, str]:
        """The response parameters with `state` and `iss`, which prevents mix-up attacks (RFC 9207)."""
        state = {"state": self.state} if self.state is not None else {}
        return {**answer, **state, "iss": self.issuer}

    def address(self, **answer: str) -> str:
        # Spaces as %20: some native apps do not decode a plus.
        return with_parameters(self.redirect_uri, urlencode(self.parameters(**answer), quote_via=quote))


class ShownError(BadRequest):
    """An error shown on the hub's own page, status 400: the browser is not redirected to an unregistered URI.

    `client_id` is as sent; the app may not exist.
    """

    def __init__(self, message: str, *, code: str, client_id: str = "", about: str = "") -> None:
        super().__init__(message, code=code)
        self.client_id, self.about = client_id, about


class RedirectedError(Exception):
    """An error returned to the app at its registered redirect URI. For `about` see OAuthError."""

    def __init__(self, return_address: ReturnAddress, error: str, description: str, about: str = "") -> None:
        super().__init__(description)
        self.return_address, self.error = return_address, error
        self.description, self.about = oauth_text(description), about


class AuthorizationRequest(Struct, frozen=True):
    app: App
    return_address: ReturnAddress
    # Whether the request had a redirect_uri: then the token request must repeat it.
    redirect_uri_sent: bool
    scopes: tuple[str, ...]
    organizations: tuple[str, ...]
    # The servers a token is requested for; empty for this hub.
    resources: tuple[str, ...]
    # Those among them that are registered.
    servers: tuple[ResourceServer, ...]
    challenge: str | None
    nonce: str | None
    prompt: frozenset[str]
    max_age: int | None
    login_hint: str
    # The user named by id_token_hint or in claims, if sent.
    expected_user: str | None
    # The claims to store with the code (oauth/claims.py).
    claims: str = ""

    @property
    def access(self) -> AccessRequest:
        redirect_uri = self.return_address.redirect_uri
        return AccessRequest(self.app, self.scopes, self.organizations, redirect_uri, self.resources, self.servers)
