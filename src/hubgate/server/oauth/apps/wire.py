"""An app's fields as the API, the pages and the audit log name them."""

import re
from typing import Any

from hubgate.server.oauth.apps.model import App

# Fields set by the owner; the attribute names are those of the API in snake case.
OWNER_FIELDS = (
    "name",
    "homepage",
    "redirect_uris",
    "post_logout_redirect_uris",
    "scopes",
    "required_scopes",
    "token_lifetime",
    "require_pkce",
    "refresh_tokens",
    "groups_claim",
    "id_token_signed_response_alg",
    "redirect_match",
)
# Fields set by admins of the organization, with their attribute names in `ExchangeSettings`.
ADMIN_FIELDS = {
    "token_duration": "duration",
    "allowed_scopes": "scopes",
    "allowed_roles": "roles",
    "allowed_networks": "networks",
    "daily_quota": "daily_quota",
    "paused": "paused",
}


def owner_fields(app: App) -> dict[str, Any]:
    return {name: _plain(getattr(app, name)) for name in OWNER_FIELDS}


def admin_fields(app: App) -> dict[str, Any]:
    """Token exchange fields. A list that is None, which means no limit, becomes an empty list."""
    values = {name: _plain(getattr(app.exchange, attribute)) for name, attribute in ADMIN_FIELDS.items()}
    return {name: [] if value is None and name.startswith("allowed_") else value for name, value in values.items()}


def changes_between(before: App, after: App) -> dict[str, Any]:
    """The new values of changed fields, by their JSON names."""
    old = {**owner_fields(before), **admin_fields(before)}
    new = {**owner_fields(after), **admin_fields(after)}
    return {_camel(name): value for name, value in new.items() if value != old[name]}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _camel(name: str) -> str:
    return re.sub("_([a-z])", lambda found: found.group(1).upper(), name)
