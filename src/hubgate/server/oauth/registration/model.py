"""The metadata of a client, and the app it describes. Pure."""

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.clock import SECOND
from hubgate.server.errors import FieldErrors
from hubgate.server.oauth.apps.fields import validate_app
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.errors import OAuthError
from hubgate.server.oauth.grants import authorization_code, device_code, refresh_token
from hubgate.server.oauth.grants.registry import grants_of
from hubgate.server.oauth.keys.algorithms import supported_or_default
from hubgate.server.scopes import BUILT_IN_SCOPES, SCOPE_NAMES, join_scopes, parse_scopes

# Values of HUBGATE_DYNAMIC_REGISTRATION, besides "on".
OFF, TOKEN = "off", "token"

_METADATA = "invalid_client_metadata"
_CODE, _REFRESH, _DEVICE = authorization_code.GRANT.type, refresh_token.GRANT.type, device_code.GRANT.type
# Clients that expect a secret are registered without one, and learn that from the response.
_REPLACED_METHODS = ("client_secret_basic", "client_secret_post")
_REDIRECT_FIELDS = ("redirectUris", "postLogoutRedirectUris")


class ClientMetadata(msgspec.Struct, omit_defaults=True):
    """Metadata that a client sends. Other members are ignored; null counts as absent."""

    redirect_uris: list[str] | None = None
    client_name: str | None = None
    client_uri: str | None = None
    scope: str | None = None
    grant_types: list[str] | None = None
    response_types: list[str] | None = None
    token_endpoint_auth_method: str | None = None
    post_logout_redirect_uris: list[str] | None = None
    id_token_signed_response_alg: str | None = None
    # Only in an update, which has to repeat it (RFC 7592, section 2.2).
    client_id: str | None = None


class RegisteredClient(msgspec.Struct):
    client_id: str
    client_id_issued_at: int
    client_name: str
    redirect_uris: list[str]
    grant_types: list[str]
    response_types: list[str]
    token_endpoint_auth_method: str
    scope: str
    id_token_signed_response_alg: str
    registration_client_uri: str
    client_uri: str | UnsetType = UNSET
    post_logout_redirect_uris: list[str] | UnsetType = UNSET
    # RFC 7592, section 3, requires it in every response, also in those to a request that presented it.
    registration_access_token: str | UnsetType = UNSET


def app_of(metadata: ClientMetadata, client_id: str, now: int) -> App:
    """The app that the metadata describes; an OAuthError if it is invalid (RFC 7591, section 3.2.2)."""
    grants = metadata.grant_types or [_CODE]
    if not {_CODE, _DEVICE}.intersection(grants):
        raise _invalid(f"grant_types must contain {_CODE} or {_DEVICE}.")
    if metadata.response_types and "code" not in metadata.response_types:
        raise _invalid("response_types must contain code.")
    method = metadata.token_endpoint_auth_method
    if method not in (None, "none", *_REPLACED_METHODS):
        raise _invalid("token_endpoint_auth_method must be none: such an app has no secret.")
    if _CODE in grants and not metadata.redirect_uris:
        raise OAuthError("invalid_redirect_uri", "redirect_uris is missing.")
    draft = App(
        client_id=client_id,
        name=metadata.client_name or "Unnamed app",
        homepage=metadata.client_uri or "",
        redirect_uris=tuple(metadata.redirect_uris or ()),
        post_logout_redirect_uris=tuple(metadata.post_logout_redirect_uris or ()),
        scopes=_scopes(metadata.scope),
        id_token_signed_response_alg=supported_or_default(metadata.id_token_signed_response_alg),
        refresh_tokens=_REFRESH in grants,
        created_at=now,
        self_registered=True,
    )
    try:
        return validate_app(draft)
    except FieldErrors as error:
        field, message = next(iter(error.fields.items()))
        raise OAuthError("invalid_redirect_uri" if field in _REDIRECT_FIELDS else _METADATA, message) from error


def _invalid(description: str) -> OAuthError:
    return OAuthError(_METADATA, description)


def _scopes(given: str | None) -> tuple[str, ...]:
    """The scopes that the app may request: the known ones among those it names; all if it names none."""
    named = [name for name in parse_scopes(given or "") if name in SCOPE_NAMES]
    return tuple(named) or tuple(scope.name for scope in BUILT_IN_SCOPES)


def describe(app: App, base_url: str) -> RegisteredClient:
    grants = [name for name in grants_of(app) if name != _CODE or app.redirect_uris]
    return RegisteredClient(
        client_id=app.client_id,
        client_id_issued_at=app.created_at // SECOND,
        client_name=app.name,
        redirect_uris=list(app.redirect_uris),
        grant_types=grants,
        response_types=["code"] if app.redirect_uris else [],
        token_endpoint_auth_method="none",  # noqa: S106 (the name of a method)
        scope=join_scopes(app.scopes),
        id_token_signed_response_alg=app.id_token_signed_response_alg,
        registration_client_uri=f"{base_url}/oauth/register/{app.client_id}",
        client_uri=app.homepage or UNSET,
        post_logout_redirect_uris=list(app.post_logout_redirect_uris) or UNSET,
    )
