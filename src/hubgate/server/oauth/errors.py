"""OAuth's own errors: a code of the RFC, a sentence for the developer, a status. (RFC 6749 section 5.2)"""

from hubgate.server.errors import BadRequest, Unauthorized

_NOT_PROVEN = "The client is unknown, or its credentials do not fit."


class OAuthRefused(BadRequest):
    """Status 400, as every refusal of the token endpoint but one."""

    def __init__(self, code: str, description: str) -> None:
        super().__init__(description, code=code)


class ClientRefused(Unauthorized):
    """invalid_client: 401, with a challenge in the scheme the client used (RFC 6749, section 5.2)."""

    def __init__(self, description: str = _NOT_PROVEN, *, basic: bool) -> None:
        super().__init__(description, code="invalid_client", challenge='Basic realm="hubgate"' if basic else "")


def invalid_request(description: str) -> OAuthRefused:
    return OAuthRefused("invalid_request", description)


def invalid_grant(description: str) -> OAuthRefused:
    return OAuthRefused("invalid_grant", description)


def invalid_scope(description: str) -> OAuthRefused:
    return OAuthRefused("invalid_scope", description)


def unauthorized_client(description: str) -> OAuthRefused:
    return OAuthRefused("unauthorized_client", description)
