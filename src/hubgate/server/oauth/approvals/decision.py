"""The key under which an approval is stored. Pure."""

import hashlib
import json
from dataclasses import dataclass

from hubgate.server.oauth.consent.access_request import AccessRequest
from hubgate.server.oauth.redirects import is_loopback, is_web


@dataclass(frozen=True, slots=True)
class ConsentDetails:
    """The parts of a consent page that a later request must match to skip the page."""

    # As in resource_indicators.py, sorted.
    resources: str = ""
    # Empty if any registered redirect URI matches.
    redirect_uri: str = ""

    @property
    def key(self) -> str:
        """A hash short enough for an index; empty in the common case of a web app and tokens for this hub."""
        content = json.dumps([self.resources, self.redirect_uri]).encode()
        return hashlib.sha256(content).hexdigest() if self.resources or self.redirect_uri else ""


def consent_details(wish: AccessRequest) -> ConsentDetails | None:
    """None if the user must be asked every time: only the user can tell which program gets the code (O75)."""
    app, target = wish.app, wish.target
    resources = " ".join(sorted(wish.resources))
    if target and not is_web(target):
        # Any app on the device can claim the scheme (RFC 8252, section 8.6).
        return None
    if is_loopback(target) and app.document_host:
        # Any program can send this document's client_id, too.
        return None
    if is_loopback(target) and not app.confidential:
        # Any local program can listen on another port and redeem the code without a secret.
        return ConsentDetails(resources, target)
    return ConsentDetails(resources)
