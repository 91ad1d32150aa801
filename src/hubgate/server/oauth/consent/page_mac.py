"""A MAC in the consent form over the content of the page: a decision is valid only for that content.

An app's owner may change its name, redirect URIs, scopes and required scopes while the page is open, the owner of a
resource server its name and scopes (attack O37).
"""

import base64
import binascii
import json

from hubgate.server.oauth.consent.approval import fixed_scopes
from hubgate.server.oauth.consent.model import AccessRequest
from hubgate.server.secret import ServerSecret

FIELD = "shown"
_PURPOSE = "consent shown"


def compute(access: AccessRequest, user_id: str, secret: ServerSecret) -> str:
    return base64.urlsafe_b64encode(secret.mac(_PURPOSE, _message(access, user_id))).decode()


def matches(given: str, access: AccessRequest, user_id: str, secret: ServerSecret) -> bool:
    try:
        mac = base64.urlsafe_b64decode(given.encode())
    except (binascii.Error, ValueError):
        return False
    return secret.mac_matches(_PURPOSE, _message(access, user_id), mac)


def _message(access: AccessRequest, user_id: str) -> bytes:
    app, scopes = access.app, sorted(access.scopes)
    fixed = sorted(fixed_scopes(access.scopes, app))
    shown = [user_id, app.client_id, app.face, access.redirect_uri, access.resources, scopes, fixed]
    servers = [[server.name, [[scope.name, scope.text] for scope in server.scopes]] for server in access.servers]
    return json.dumps([*shown, servers]).encode()
