"""The surfaces of the hub: groups of routes that share an error format and CORS rules.

A route names its surface; an address that matches no route gets a surface by its prefix, so that a 404 under `/api/`
is JSON, not a page.
"""

from enum import Enum, unique

from msgspec import Struct


class ErrorShape(Enum):
    API = "api"
    OAUTH = "oauth"
    PAGE = "page"
    TEXT = "text"
    LFS = "lfs"


class Rules(Struct, frozen=True):
    errors: ErrorShape
    # Open to browser apps of other origins, without credentials. Never for pages and forms.
    cors: bool
    # Responses have content by others, and get an origin of their own.
    sandboxed: bool = False
    # Callers present a token for the storage API, not one of the hub's own (`access/storage_tokens.py`).
    by_storage_token: bool = False


@unique
class Surface(Enum):
    API = Rules(ErrorShape.API, cors=True)
    OAUTH = Rules(ErrorShape.OAUTH, cors=True)
    # For servers only: browser apps do not use introspection.
    OAUTH_PRIVATE = Rules(ErrorShape.OAUTH, cors=False)
    FILE = Rules(ErrorShape.TEXT, cors=True, sandboxed=True)
    GIT = Rules(ErrorShape.TEXT, cors=False)
    # Browser apps upload large files too.
    LFS = Rules(ErrorShape.LFS, cors=True)
    # Chunked storage of large files (Xet); browser apps use it too.
    STORAGE = Rules(ErrorShape.API, cors=True, by_storage_token=True)
    PAGE = Rules(ErrorShape.PAGE, cors=False)
    PROBE = Rules(ErrorShape.API, cors=False)
    # Answers of receivers behind tunnels, and of Spaces.
    TUNNEL = Rules(ErrorShape.API, cors=False, sandboxed=True)

    def __init__(self, rules: Rules) -> None:
        # The value, as an attribute that is read without a call.
        self.rules = rules


_PREFIXES = (b"/api/", b"/v1/", b"/.well-known/")
_OAUTH_ENDPOINTS = {b"/oauth/jwks", b"/oauth/token", b"/oauth/userinfo", b"/oauth/revoke", b"/oauth/register"}


def surface_of(raw_path: bytes) -> Surface:
    if raw_path.startswith(_PREFIXES):
        return Surface.API
    if raw_path in _OAUTH_ENDPOINTS or raw_path.startswith(b"/oauth/register/"):
        return Surface.OAUTH
    if raw_path == b"/oauth/introspect":
        return Surface.OAUTH_PRIVATE
    if raw_path.startswith(b"/xet/"):
        return Surface.STORAGE
    if raw_path.startswith((b"/tunnel/", b"/hosted/")):
        return Surface.TUNNEL
    if b".git/info/lfs/" in raw_path or raw_path.startswith(b"/lfs/"):
        return Surface.LFS
    if b".git/" in raw_path:
        return Surface.GIT
    if b"/resolve/" in raw_path or b"/raw/" in raw_path:
        return Surface.FILE
    return Surface.PAGE
