"""What an app asks a user for, whichever way it asks: in the browser, or from a device."""

from dataclasses import dataclass

from hubgate.server.oauth.apps.model import App


@dataclass(frozen=True)
class Wish:
    app: App
    scopes: tuple[str, ...]
    # Ids of organizations the app asks for by name.
    organizations: tuple[str, ...] = ()
    # The redirect URI the answer goes to; empty where a device waits for it.
    target: str = ""
    # The servers a token is requested for (RFC 8707); none where it is for this hub.
    resources: tuple[str, ...] = ()
