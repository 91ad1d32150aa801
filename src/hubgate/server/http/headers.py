"""Headers on every answer: the request id, the security policy of its surface, CORS where browser apps call."""

from collections.abc import Iterable

from hubgate.server.http.surface import Surface

RawHeaders = list[tuple[bytes, bytes]]

# Pages load nothing from elsewhere and run no inline script; nothing may frame them.
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Uploaded content never runs in our origin.
_FILE_POLICY = "default-src 'none'; sandbox"
_DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"

_POLICIES = {Surface.PAGE: _PAGE_POLICY, Surface.FILE: _FILE_POLICY}

_ALLOW_HEADERS = "Authorization, Content-Type, Range, X-Request-Id"
_EXPOSE_HEADERS = (
    "Link, ETag, X-Repo-Commit, X-Linked-Size, X-Linked-ETag, X-Error-Code, X-Error-Message, X-Request-Id, "
    "X-Total-Count, Content-Range, Accept-Ranges, WWW-Authenticate, Retry-After"
)
_PREFLIGHT_SECONDS = 7200


class StandardHeaders:
    """The fixed part is encoded once per surface: this runs on every answer."""

    def __init__(self, secure: bool) -> None:
        self._fixed = {surface: _encoded(_lines(surface, secure)) for surface in Surface}

    def add(self, surface: Surface, request_id: str, given: RawHeaders) -> RawHeaders:
        """What the handler said wins over what is standard."""
        names = {name.lower() for name, _ in given}
        standard = [pair for pair in self._fixed[surface] if pair[0] not in names]
        return [*given, *standard, (b"x-request-id", request_id.encode())]


def preflight(methods: Iterable[str]) -> dict[str, str]:
    return {
        "access-control-allow-methods": ", ".join(methods),
        "access-control-allow-headers": _ALLOW_HEADERS,
        "access-control-max-age": str(_PREFLIGHT_SECONDS),
    }


def _lines(surface: Surface, secure: bool) -> dict[str, str]:
    lines = {
        "content-security-policy": _POLICIES.get(surface, _DATA_POLICY),
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",
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
