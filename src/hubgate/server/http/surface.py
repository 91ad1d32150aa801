"""The surfaces of the hub: which rules of the wire apply to an address.

A route names its surface; an address that matches no route gets the one its prefix suggests, so that a 404 under
`/api/` is JSON and anywhere else a page.
"""

from dataclasses import dataclass
from enum import Enum, unique


class ErrorShape(Enum):
    API = "api"
    OAUTH = "oauth"
    PAGE = "page"
    TEXT = "text"


@dataclass(frozen=True)
class Rules:
    errors: ErrorShape
    # Called by browser apps of other origins. Never with credentials, and never on pages and forms.
    cors: bool


@unique
class Surface(Enum):
    API = Rules(ErrorShape.API, cors=True)
    OAUTH = Rules(ErrorShape.OAUTH, cors=True)
    # For servers only: no browser app has business at introspection.
    OAUTH_PRIVATE = Rules(ErrorShape.OAUTH, cors=False)
    FILE = Rules(ErrorShape.TEXT, cors=True)
    GIT = Rules(ErrorShape.TEXT, cors=False)
    PAGE = Rules(ErrorShape.PAGE, cors=False)
    PROBE = Rules(ErrorShape.API, cors=False)


_PREFIXES: tuple[tuple[str, Surface], ...] = (
    ("/api/", Surface.API),
    ("/v1/", Surface.API),
    ("/.well-known/", Surface.API),
)
_OAUTH_ENDPOINTS = {"/oauth/jwks", "/oauth/token", "/oauth/userinfo", "/oauth/revoke"}


def surface_of(path: str) -> Surface:
    for prefix, surface in _PREFIXES:
        if path.startswith(prefix):
            return surface
    if path in _OAUTH_ENDPOINTS:
        return Surface.OAUTH
    if "/resolve/" in path or "/raw/" in path:
        return Surface.FILE
    return Surface.PAGE
