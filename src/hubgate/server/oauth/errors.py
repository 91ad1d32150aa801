"""OAuth's own errors: a code of the RFC, a sentence for the developer, a status. (RFC 6749 section 5.2)"""

from hubgate.server.errors import BadRequest, Unauthorized
from hubgate.server.http.oauth_text import oauth_text

_NOT_PROVEN = "The client is unknown, or its credentials do not fit."


class OAuthRefused(BadRequest):
    """Status 400, as every refusal of the token endpoint but one.

    `about` names the parameter to mark in the explanation, where comparing with what is registered would not tell.
    """

    def __init__(self, code: str, description: str, about: str = "") -> None:
        super().__init__(oauth_text(description), code=code)
        self.about = about


class NotYet(OAuthRefused):
    """What a device that waits is told; no mistake of the app's (RFC 8628, section 3.5)."""


class ClientRefused(Unauthorized):
    """invalid_client: 401, with a challenge in the scheme the client used (RFC 6749, section 5.2)."""

    def __init__(self, description: str = _NOT_PROVEN, *, basic: bool) -> None:
        super().__init__(description, code="invalid_client", challenge='Basic realm="hubgate"' if basic else "")


def invalid_request(description: str, about: str = "") -> OAuthRefused:
    return OAuthRefused("invalid_request", description, about)


def invalid_grant(description: str, about: str = "") -> OAuthRefused:
    return OAuthRefused("invalid_grant", description, about)


def invalid_scope(description: str, about: str = "") -> OAuthRefused:
    return OAuthRefused("invalid_scope", description, about)


def invalid_target(description: str) -> OAuthRefused:
    """RFC 8707, section 2."""
    return OAuthRefused("invalid_target", description, "resource")


def unauthorized_client(description: str) -> OAuthRefused:
    return OAuthRefused("unauthorized_client", description)
