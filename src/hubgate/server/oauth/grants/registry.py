"""The supported grant types. Discovery, documentation and the unsupported_grant_type error are generated from this."""

from collections.abc import Mapping

from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.grants import authorization_code, device_code, refresh_token, token_exchange
from hubgate.server.oauth.grants.request import Grant

GRANTS: Mapping[str, Grant] = {
    authorization_code.TYPE: authorization_code.grant,
    refresh_token.TYPE: refresh_token.grant,
    device_code.TYPE: device_code.grant,
    token_exchange.TYPE: token_exchange.grant,
}


def grants_of(app: App) -> tuple[str, ...]:
    """The grant types that this app's settings allow."""
    disabled = {
        refresh_token.TYPE: not app.refresh_tokens,
        token_exchange.TYPE: app.org_id is None or not app.confidential or not app.exchange.privileged,
    }
    return tuple(name for name in GRANTS if not disabled.get(name))


# The documented parameters of each grant, without grant_type and client authentication.
PARAMETERS: Mapping[str, Mapping[str, str]] = {
    authorization_code.TYPE: authorization_code.PARAMETERS,
    refresh_token.TYPE: refresh_token.PARAMETERS,
    device_code.TYPE: device_code.PARAMETERS,
    token_exchange.TYPE: token_exchange.PARAMETERS,
}

# Grants called even without client credentials: a code identifies its app, and token exchange has its own error.
WITHOUT_CLIENT = frozenset({authorization_code.TYPE, token_exchange.TYPE})
