"""OAuth errors: an RFC error code, a description for the developer and a status (RFC 6749, section 5.2)."""

from hubgate.server.errors import BadRequest, Unauthorized
from hubgate.server.http.render import oauth_text

_INVALID_CLIENT = "Unknown client ID or wrong secret."


class OAuthError(BadRequest):
    """An OAuth error with status 400; for invalid_client, with status 401, see InvalidClient.

    `about` names the parameter that caused the error, for the page that explains it to the app's owner (`explain`). It
    is empty if that page finds the parameter by comparing the request with the app's registration.
    """

    def __init__(self, code: str, description: str, about: str = "") -> None:
        super().__init__(oauth_text(description), code=code)
        self.about = about


class AuthorizationPending(OAuthError):
    """The response to a polling device before the user has decided; not an app error (RFC 8628, section 3.5)."""


class InvalidClient(Unauthorized):
    """invalid_client: 401, with a challenge in the scheme the client used (RFC 6749, section 5.2).

    `about` is as in OAuthError; the default is for a wrong secret or an unknown client.
    """

    def __init__(self, description: str = _INVALID_CLIENT, *, basic: bool, about: str = "client_secret") -> None:
        super().__init__(description, code="invalid_client", challenge='Basic realm="hubgate"' if basic else "")
        self.about = about


def invalid_request(description: str, about: str = "") -> OAuthError:
    return OAuthError("invalid_request", description, about)


def invalid_grant(description: str, about: str = "") -> OAuthError:
    return OAuthError("invalid_grant", description, about)


def invalid_scope(description: str, about: str = "") -> OAuthError:
    return OAuthError("invalid_scope", description, about)


def invalid_target(description: str) -> OAuthError:
    """The error for a `resource` that is invalid or was not authorized (RFC 8707, section 2)."""
    return OAuthError("invalid_target", description, "resource")


def unauthorized_client(description: str) -> OAuthError:
    return OAuthError("unauthorized_client", description)
