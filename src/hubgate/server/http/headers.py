"""Headers of every response: the request id, the security policy of its surface, and CORS for browser apps."""

from collections.abc import Iterable
from functools import cache

from msgspec import Struct

from hubgate.server.http.asgi import RawHeaders
from hubgate.server.http.surface import Surface

# Pages load nothing from other origins, run no inline scripts and cannot be framed.
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Omitted for forms that lead to an app: Chromium applies it to every redirect and would silently block the last one.
_FORM_ACTION_SELF = "; form-action 'self'"
# Uploaded content and receivers' answers never run in our origin.
_SANDBOX_POLICY = "default-src 'none'; sandbox"
_DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"

ALLOWED_HEADERS = "Authorization, Content-Type, MCP-Protocol-Version, Range, X-Request-Id"
# For forwarded requests, whose headers the hub does not know. The wildcard does not include Authorization.
ANY_HEADERS = "Authorization, *"
_EXPOSE_HEADERS = (
    "Link, ETag, X-Repo-Commit, X-Linked-Size, X-Linked-ETag, X-Error-Code, X-Error-Message, X-Request-Id, "
    "X-Total-Count, Content-Range, Accept-Ranges, WWW-Authenticate, Retry-After, X-Pull-Request-Only, X-Xet-Hash"
)
_PREFLIGHT_SECONDS = 7200


class HeaderPolicy(Struct, frozen=True, eq=False):
    """The fields of a route that determine its standard headers. `policy_of` returns one object for equal fields."""

    surface: Surface
    secret_address: bool = False
    leaves_hub: bool = False


@cache
def policy_of(surface: Surface, secret_address: bool = False, leaves_hub: bool = False) -> HeaderPolicy:
    return HeaderPolicy(surface, secret_address, leaves_hub)


class StandardHeaders:
    """The standard headers, encoded once per policy because they are added to every response."""

    def __init__(self, secure: bool) -> None:
        self._secure = secure
        self._fixed: dict[HeaderPolicy, tuple[frozenset[bytes], RawHeaders]] = {}

    def add(self, policy: HeaderPolicy, request_id: str, given: RawHeaders) -> RawHeaders:
        """Add the standard headers; headers that the handler set take precedence. Their names are in lower case."""
        names, fixed = self._fixed.get(policy) or self._encoded(policy)
        replaced = [name for name, _ in given if name in names]
        standard = [pair for pair in fixed if pair[0] not in replaced] if replaced else fixed
        return [*given, *standard, (b"x-request-id", request_id.encode())]

    def _encoded(self, policy: HeaderPolicy) -> tuple[frozenset[bytes], RawHeaders]:
        pairs = [(name.encode(), value.encode()) for name, value in _standard(policy, self._secure).items()]
        found = self._fixed[policy] = frozenset(name for name, _ in pairs), pairs
        return found


def preflight(methods: Iterable[str], allowed_headers: str) -> dict[str, str]:
    return {
        "access-control-allow-methods": ", ".join(methods),
        "access-control-allow-headers": allowed_headers,
        "access-control-max-age": str(_PREFLIGHT_SECONDS),
    }


def _standard(policy: HeaderPolicy, secure: bool) -> dict[str, str]:
    surface = policy.surface
    content_policy = _SANDBOX_POLICY if surface.rules.sandboxed else _DATA_POLICY
    if surface is Surface.PAGE:
        content_policy = _PAGE_POLICY
    if surface is Surface.PAGE and not policy.leaves_hub:
        content_policy += _FORM_ACTION_SELF
    lines = {
        "content-security-policy": content_policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer" if policy.secret_address else "same-origin",
        "cache-control": "no-store",
    }
    if surface is Surface.PAGE:
        # For browsers that do not know frame-ancestors.
        lines["x-frame-options"] = "DENY"
        lines["permissions-policy"] = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"
    if surface.rules.cors:
        lines["access-control-allow-origin"] = "*"
        lines["access-control-expose-headers"] = _EXPOSE_HEADERS
    if secure:
        lines["strict-transport-security"] = "max-age=31536000"
    return lines
