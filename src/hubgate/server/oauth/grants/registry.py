"""The supported grant types. Discovery, documentation and the unsupported_grant_type error are generated from this."""

from collections.abc import Mapping

from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.grants import authorization_code, device_code, refresh_token, token_exchange
from hubgate.server.oauth.grants.pipeline import Grant

_MODULES = (authorization_code, refresh_token, device_code, token_exchange)
GRANTS: Mapping[str, Grant] = {module.GRANT.type: module.GRANT for module in _MODULES}


def grants_of(app: App) -> tuple[str, ...]:
    """The grant types that this app's settings allow."""
    return tuple(grant.type for grant in GRANTS.values() if grant.is_enabled(app))
