"""The `claims` parameter (OpenID Connect Core, section 5.5): claims for the ID token and for userinfo. Pure.

Claims of a scope are always in both, so requesting one of them means to request its scope, which the consent page
shows. `groups` has to be requested, by this parameter or in the app's settings, because it makes ID tokens longer. The
places that get it are stored with codes and tokens, as words separated by spaces.
"""

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.tokens.idtoken import CLAIMS_BY_SCOPE

PARAMETER = "claims"
LONGEST = 4096
GROUPS = "groups"
# The scope that `groups` needs.
GROUPS_SCOPE = "profile"
GROUPS_IN_ID_TOKEN, GROUPS_IN_USERINFO = "id_token.groups", "userinfo.groups"
_SCOPE_OF: Mapping[str, str] = {
    GROUPS: GROUPS_SCOPE,
    **{claim: scope for scope, claims in CLAIMS_BY_SCOPE.items() for claim in claims},
}


class RequestedClaims(Struct, frozen=True):
    scopes: tuple[str, ...] = ()
    # As stored.
    places: str = ""
    # The only user that the app accepts, if it names one.
    subject: str | None = None


def parse_claims(text: str) -> RequestedClaims:
    """Parse the parameter; ValueError says what is wrong. Unknown claims are ignored, as section 5.5 requires."""
    if len(text) > LONGEST:
        raise ValueError(f"claims has more than {LONGEST:,} characters.")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("claims is not JSON.") from None
    in_id_token, in_userinfo = _members(document, "id_token"), _members(document, "userinfo")
    scopes = dict.fromkeys(_SCOPE_OF[name] for name in (*in_id_token, *in_userinfo) if name in _SCOPE_OF)
    places = [GROUPS_IN_ID_TOKEN] * (GROUPS in in_id_token) + [GROUPS_IN_USERINFO] * (GROUPS in in_userinfo)
    return RequestedClaims(tuple(scopes), " ".join(places), _subject(in_id_token.get("sub")))


def _members(document: Any, name: str) -> dict[str, Any]:
    found = document.get(name) if isinstance(document, dict) else document
    if found is None and isinstance(document, dict):
        return {}
    if not isinstance(found, dict):
        raise ValueError('claims must be a JSON object such as {"userinfo": {"groups": null}}.')  # noqa: TRY004
    return found


def _subject(wish: Any) -> str | None:
    value = wish.get("value") if isinstance(wish, dict) else None
    return value if isinstance(value, str) else None


def places_for(app: App, requested: str) -> str:
    """The places that get `groups`: those requested, or both if the app's settings say so."""
    return f"{GROUPS_IN_ID_TOKEN} {GROUPS_IN_USERINFO}" if app.groups_claim else requested
