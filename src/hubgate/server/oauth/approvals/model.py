"""Under which key an approval is remembered. Pure."""

import hashlib
import json
from dataclasses import dataclass

from hubgate.server.oauth.consent.wish import Wish
from hubgate.server.oauth.redirects import is_loopback, is_web


@dataclass(frozen=True, slots=True)
class Shown:
    # As in resource_indicators.py, sorted.
    resources: str = ""
    # Empty where any address that the app registered will do.
    redirect_uri: str = ""

    @property
    def key(self) -> str:
        """Short enough for an index. Empty for what most are: the hub, and an app that is answered at its own site."""
        said = json.dumps([self.resources, self.redirect_uri]).encode()
        return hashlib.sha256(said).hexdigest() if self.resources or self.redirect_uri else ""


def shown_by(wish: Wish) -> Shown | None:
    """None where the user is asked each time: nobody but the user can tell which program will get the code (O75)."""
    app, target = wish.app, wish.target
    resources = " ".join(sorted(wish.resources))
    if target and not is_web(target):
        # Any app on the device may claim the scheme (RFC 8252, section 8.6).
        return None
    if is_loopback(target) and app.document_host:
        # Any program may show this document's name, too.
        return None
    if is_loopback(target) and not app.confidential:
        # Any program on the computer may listen on another port, and redeem the code without a secret.
        return Shown(resources, target)
    return Shown(resources)
