"""An app as JSON: response and request bodies, and applying a request to an app."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from hubgate.server.accounts.model import Organization
from hubgate.server.clock import iso
from hubgate.server.oauth.apps.fields import (
    DEFAULT_SCOPES,
    LARGEST_QUOTA,
    LONGEST_HOMEPAGE,
    LONGEST_NAME,
    MAX_NETWORKS,
    MAX_REDIRECT_URIS,
    SHORTEST_LIFETIME,
)
from hubgate.server.oauth.apps.model import DEFAULT_LIFETIME, LONGEST_LIFETIME, LONGEST_OVERLAP, App
from hubgate.server.oauth.apps.wire import ADMIN_FIELDS, OWNER_FIELDS, admin_fields, owner_fields

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Homepage = Annotated[str, Meta(max_length=LONGEST_HOMEPAGE)]
RedirectUris = Annotated[list[str], Meta(max_length=MAX_REDIRECT_URIS)]
Networks = Annotated[list[str], Meta(max_length=MAX_NETWORKS)]
# The parser does not check the range: saving the app does, with a clearer message.
Seconds = Annotated[int, Meta(extra_json_schema={"minimum": SHORTEST_LIFETIME, "maximum": LONGEST_LIFETIME})]
Quota = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": LARGEST_QUOTA})] | None
Match = Literal["exact", "origin"]
Algorithm = Literal["RS256", "ES256", "EdDSA"]

EMPTY_APP = App(client_id="", name="", scopes=DEFAULT_SCOPES)

# Read-only fields, each with advice for the error message.
READ_ONLY = {
    "clientId": "",
    "organization": "",
    "createdAt": "",
    "confidential": " POST to the app's /secret creates a secret, DELETE removes it.",
    "tokenExchange": " Ask the operator for it.",
}


class RegisteredApp(msgspec.Struct, rename="camel"):
    client_id: str
    name: str
    homepage: str
    redirect_uris: list[str]
    post_logout_redirect_uris: list[str]
    scopes: list[str]
    required_scopes: list[str]
    confidential: bool
    token_lifetime: int
    require_pkce: bool
    refresh_tokens: bool
    groups_claim: bool
    id_token_signed_response_alg: Algorithm
    redirect_match: Match
    # The organization's name.
    organization: str | None
    created_at: str
    # Only in the response that created the secret.
    client_secret: str | UnsetType = UNSET


class RegisteredOrganizationApp(RegisteredApp, kw_only=True):
    """An app of an organization. An empty list of allowed values means no limit."""

    token_exchange: bool
    token_duration: int
    allowed_scopes: list[str]
    allowed_roles: list[str]
    allowed_networks: list[str]
    daily_quota: int | None
    paused: bool


class NewApp(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    name: Name
    homepage: Homepage = ""
    redirect_uris: RedirectUris = []
    post_logout_redirect_uris: RedirectUris = []
    scopes: list[str] = msgspec.field(default_factory=lambda: list(DEFAULT_SCOPES))
    required_scopes: list[str] = []
    confidential: bool = True
    token_lifetime: Seconds = DEFAULT_LIFETIME
    require_pkce: bool = False
    refresh_tokens: bool = False
    groups_claim: bool = False
    id_token_signed_response_alg: Algorithm = "RS256"  # noqa: S105 (the name of an algorithm)
    redirect_match: Match = "exact"


class NewOrganizationApp(NewApp, kw_only=True):
    token_duration: Seconds = DEFAULT_LIFETIME
    allowed_scopes: list[str] = []
    allowed_roles: list[str] = []
    allowed_networks: Networks = []
    daily_quota: Quota = None
    paused: bool = False


class AppChanges(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Changes to an app; fields that are not sent stay unchanged."""

    name: Name | UnsetType = UNSET
    homepage: Homepage | UnsetType = UNSET
    redirect_uris: RedirectUris | UnsetType = UNSET
    post_logout_redirect_uris: RedirectUris | UnsetType = UNSET
    scopes: list[str] | UnsetType = UNSET
    required_scopes: list[str] | UnsetType = UNSET
    token_lifetime: Seconds | UnsetType = UNSET
    require_pkce: bool | UnsetType = UNSET
    refresh_tokens: bool | UnsetType = UNSET
    groups_claim: bool | UnsetType = UNSET
    id_token_signed_response_alg: Algorithm | UnsetType = UNSET
    redirect_match: Match | UnsetType = UNSET
    # Read-only: accepted only with their current value.
    client_id: str | UnsetType = UNSET
    confidential: bool | UnsetType = UNSET
    organization: str | UnsetType | None = UNSET
    created_at: str | UnsetType = UNSET


class OrganizationAppChanges(AppChanges, kw_only=True):
    token_duration: Seconds | UnsetType = UNSET
    allowed_scopes: list[str] | UnsetType = UNSET
    allowed_roles: list[str] | UnsetType = UNSET
    allowed_networks: Networks | UnsetType = UNSET
    daily_quota: Quota | UnsetType = UNSET
    paused: bool | UnsetType = UNSET
    token_exchange: bool | UnsetType = UNSET


class NewSecret(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    overlap_seconds: Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": LONGEST_OVERLAP})] = 0


def describe(app: App, organization: Organization | None) -> RegisteredApp:
    fields: dict[str, Any] = {
        **owner_fields(app),
        "client_id": app.client_id,
        "confidential": app.confidential,
        "require_pkce": app.needs_pkce,
        "organization": organization.name if organization else None,
        "created_at": iso(app.created_at),
    }
    if organization is None:
        return RegisteredApp(**fields)
    return RegisteredOrganizationApp(**fields, **admin_fields(app), token_exchange=app.exchange.privileged)


def apply_changes(app: App, given: NewApp | AppChanges) -> App:
    """Return the app with the request applied. Validation happens on save."""
    limits = {attribute: getattr(given, name, UNSET) for name, attribute in ADMIN_FIELDS.items()}
    own = {name: getattr(given, name) for name in OWNER_FIELDS}
    return replace(app, **_without_unset(own), exchange=replace(app.exchange, **_without_unset(limits)))


def _without_unset(values: dict[str, Any]) -> dict[str, Any]:
    """Omit unset values; lists become tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items() if value is not UNSET
    }
