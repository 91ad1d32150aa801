"""Metadata documents for clients: OpenID Connect Discovery, RFC 8414 and RFC 9728 (which a 401 links to)."""

from typing import Any

from hubgate.server.edge.routes import PublicHandler, Route, public
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.authorize.request import RESPONSE_MODES
from hubgate.server.oauth.claims import GROUPS
from hubgate.server.oauth.grants.registry import GRANTS
from hubgate.server.oauth.keys.algorithms import ALGORITHMS
from hubgate.server.oauth.pkce import METHOD
from hubgate.server.oauth.tokens import idtoken
from hubgate.server.scopes import BUILT_IN_SCOPES
from hubgate.server.web.oauth import userinfo

_CLAIMS = (
    *idtoken.BASE_CLAIMS,
    *userinfo.ALWAYS,
    *(claim for claims in userinfo.OF_SCOPE.values() for claim in claims),
    GROUPS,
)
_HEADERS = {"cache-control": "public, max-age=300"}


def routes(base_url: str, *, registration: bool) -> list[Route]:
    """The routes of the metadata documents. `registration` is whether apps may register themselves.

    One client library passes every field to its constructor as a keyword argument: no field may be called scope, state,
    token, nonce, prompt or redirect_uri.
    """
    provider: dict[str, Any] = {
        "issuer": base_url,
        "authorization_endpoint": f"{base_url}/oauth/authorize",
        "token_endpoint": f"{base_url}/oauth/token",
        "userinfo_endpoint": f"{base_url}/oauth/userinfo",
        "revocation_endpoint": f"{base_url}/oauth/revoke",
        "introspection_endpoint": f"{base_url}/oauth/introspect",
        "device_authorization_endpoint": f"{base_url}/oauth/device",
        "end_session_endpoint": f"{base_url}/oauth/logout",
        "jwks_uri": f"{base_url}/oauth/jwks",
        "service_documentation": f"{base_url}/docs/sign-in",
        "response_types_supported": ["code"],
        "response_modes_supported": list(RESPONSE_MODES),
        "grant_types_supported": list(GRANTS),
        "code_challenge_methods_supported": [METHOD],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": list(ALGORITHMS),
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
        "revocation_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
        "introspection_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "scopes_supported": [scope.name for scope in BUILT_IN_SCOPES],
        "claims_supported": list(dict.fromkeys(_CLAIMS)),
        "prompt_values_supported": ["none", "login", "consent", "select_account"],
        "authorization_response_iss_parameter_supported": True,
        # The name that existing clients know, then the name in the IETF draft.
        "client_id_metadata_supported": True,
        "client_id_metadata_document_supported": True,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
        "claims_parameter_supported": True,
        # The `resource` (RFC 8707) that this hub serves itself (RFC 9728, section 4).
        "protected_resources": [base_url],
    }
    if registration:
        provider["registration_endpoint"] = f"{base_url}/oauth/register"
    resource = {
        "resource": base_url,
        "authorization_servers": [base_url],
        "jwks_uri": f"{base_url}/oauth/jwks",
        "bearer_methods_supported": ["header"],
        "scopes_supported": [scope.name for scope in BUILT_IN_SCOPES],
        "resource_documentation": f"{base_url}/docs/api",
    }
    return [
        _route("/.well-known/openid-configuration", provider, "Where and how to sign in (OpenID Connect)"),
        _route("/.well-known/oauth-authorization-server", provider, "The same metadata at the address of RFC 8414"),
        _route("/.well-known/oauth-protected-resource", resource, "Which server issues tokens for this API"),
    ]


def _route(path: str, document: dict[str, Any], summary: str) -> Route:
    return Route(
        "GET",
        path,
        public(_serve(document)),
        Surface.API,
        summary,
        answers={200: ("Metadata.", dict[str, Any])},
    )


def _serve(document: dict[str, Any]) -> PublicHandler:
    async def handler(_: HubRequest) -> JsonResponse:
        return JsonResponse(document, headers=_HEADERS)

    return handler
