"""An app's request for access, from the browser or from a device."""

from dataclasses import dataclass

from hubgate.server.oauth.apps.model import App


@dataclass(frozen=True)
class AccessRequest:
    app: App
    scopes: tuple[str, ...]
    # Ids of organizations the app requests.
    organizations: tuple[str, ...] = ()
    # The redirect URI; empty for the device flow.
    target: str = ""
    # The servers a token is requested for (RFC 8707); empty for this hub.
    resources: tuple[str, ...] = ()
