"""The grant types this hub knows. Discovery, documentation and the answer to an unknown one follow from these lines."""

from collections.abc import Mapping

from hubgate.server.oauth.grants import authorization_code, device_code, refresh_token, token_exchange
from hubgate.server.oauth.grants.asking import Grant

GRANTS: Mapping[str, Grant] = {
    authorization_code.TYPE: authorization_code.grant,
    refresh_token.TYPE: refresh_token.grant,
    device_code.TYPE: device_code.grant,
    token_exchange.TYPE: token_exchange.grant,
}

# What each reads beside grant_type and the client's proof, in words.
PARAMETERS: Mapping[str, Mapping[str, str]] = {
    authorization_code.TYPE: authorization_code.PARAMETERS,
    refresh_token.TYPE: refresh_token.PARAMETERS,
    device_code.TYPE: device_code.PARAMETERS,
    token_exchange.TYPE: token_exchange.PARAMETERS,
}

# Take requests that name no client: a code says itself whose it is, and an exchange says how a client proves itself.
WITHOUT_CLIENT = frozenset({authorization_code.TYPE, token_exchange.TYPE})
