"""Headers of every response: the request id, the security policy of its surface, and CORS for browser apps."""

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

from hubgate.server.http.surface import Surface

RawHeaders = list[tuple[bytes, bytes]]

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


class HeaderPolicy(NamedTuple):
    """The fields of a route that determine its standard headers."""

    surface: Surface
    secret_address: bool = False
    leaves_hub: bool = False


class StandardHeaders:
    """The standard headers, encoded once per policy because `add` runs for every response."""

    def __init__(self, secure: bool) -> None:
        policies = [HeaderPolicy(*parts) for parts in product(Surface, (False, True), (False, True))]
        self._fixed = {policy: _encoded(_standard(policy, secure)) for policy in policies}

    def add(self, policy: HeaderPolicy, request_id: str, given: RawHeaders) -> RawHeaders:
        """Add the standard headers; headers that the handler set take precedence."""
        names = {name.lower() for name, _ in given}
        standard = [pair for pair in self._fixed[policy] if pair[0] not in names]
        return [*given, *standard, (b"x-request-id", request_id.encode())]


def preflight(methods: Iterable[str], allowed_headers: str) -> dict[str, str]:
    return {
        "access-control-allow-methods": ", ".join(methods),
        "access-control-allow-headers": allowed_headers,
        "access-control-max-age": str(_PREFLIGHT_SECONDS),
    }


def _standard(policy: HeaderPolicy, secure: bool) -> dict[str, str]:
    surface = policy.surface
    content_policy = _SANDBOX_POLICY if surface.value.sandboxed else _DATA_POLICY
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
    if surface.value.cors:
        lines["access-control-allow-origin"] = "*"
        lines["access-control-expose-headers"] = _EXPOSE_HEADERS
    if secure:
        lines["strict-transport-security"] = "max-age=31536000"
    return lines


def _encoded(lines: dict[str, str]) -> RawHeaders:
    return [(name.encode(), value.encode()) for name, value in lines.items()]
