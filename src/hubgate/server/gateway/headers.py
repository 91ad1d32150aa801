"""The headers that the gateway removes or changes, in each direction. All others pass unchanged.

A service behind the gateway must learn who the caller is from the signed identity only, so headers that carry a
credential or that services trust as set by a proxy are removed, and so are those that replace the method or the path
that the hub has checked. The service's answer appears under the hub's origin, so it must not set the hub's cookies,
change what browsers allow there, or command the proxy in front of the hub.
"""

import re

from hubgate.server.errors import BadRequest
from hubgate.server.gateway.upstream import Upstream

RawHeaders = list[tuple[bytes, bytes]]

# Concern one connection only (RFC 9110, section 7.6.1).
_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding "
    b"upgrade".split()
)
# The hub sends its own host, length, identity and request id. `x-hf-bill-to` may contradict the signed namespace.
_DROPPED_IN_REQUESTS = frozenset(
    b"authorization cookie cookie2 host content-length expect forwarded via x-real-ip true-client-ip client-ip "
    b"x-cluster-client-ip origin referer x-hf-bill-to x-request-id".split()
)
_DROPPED_REQUEST_PREFIXES = tuple(
    b"x-forwarded- proxy- sec- x-client-ip x-client-cert x-client-verify x-ssl- ssl- cf- fastly- x-envoy- "
    # Override the method or the path: a user with the role read could delete.
    b"x-http-method x-method-override x-original- x-rewrite- "
    # Set by various proxies to identify the user.
    b"remote- x-remote- x-auth- x-authenticated- x-webauth- x-ms-client-principal x-amzn-oidc- "
    b"x-goog-authenticated- x-goog-iap-".split()
)
# The hub sends its own standard headers. `cache-control`: answers to authenticated requests are never stored.
_DROPPED_IN_RESPONSES = frozenset(
    b"set-cookie set-cookie2 content-security-policy content-security-policy-report-only strict-transport-security "
    b"x-frame-options x-content-type-options x-xss-protection referrer-policy permissions-policy clear-site-data "
    b"timing-allow-origin service-worker-allowed alt-svc nel report-to reporting-endpoints refresh cache-control "
    b"expires pragma date server via x-request-id www-authenticate x-sendfile x-lighttpd-send-file x-reproxy-url "
    b"x-accel-redirect x-accel-expires x-accel-charset x-accel-limit-rate".split()
)
_DROPPED_RESPONSE_PREFIXES = (b"access-control-", b"cross-origin-", b"proxy-", b"sec-")
_NOT_MODIFIED = 304
_LINE_BREAK = re.compile(rb"[\r\n\0]")
# Contain addresses, which clients must be able to open.
_ADDRESSES = frozenset({b"location", b"content-location", b"link"})


def request_headers(given: RawHeaders) -> RawHeaders:
    """The caller's headers that are sent to the service."""
    if any(_LINE_BREAK.search(value) for _, value in given):
        # A line break would inject a header or a request.
        raise BadRequest("A header contains a line break or a null character.")
    dropped = _HOP_BY_HOP | _DROPPED_IN_REQUESTS | _named_in_connection(given)
    token = _token(given)
    return [
        (name, value)
        for name, value in given
        if name not in dropped
        and not name.startswith(_DROPPED_REQUEST_PREFIXES)
        # Many services treat x_forwarded_for like x-forwarded-for.
        and b"_" not in name
        and token not in value
    ]


def response_headers(status: int, given: RawHeaders, upstream: Upstream, base_url: str) -> RawHeaders:
    """The service's headers that are returned to the client. Names are in lower case."""
    dropped = _HOP_BY_HOP | _DROPPED_IN_RESPONSES | _named_in_connection(given)
    # The length in a 304 is that of a body that does not follow; the hub's HTTP server would expect that body.
    if status == _NOT_MODIFIED or any(name == b"transfer-encoding" for name, _ in given):
        dropped |= {b"content-length"}
    return [
        (name, _public_address(value, upstream, base_url) if name in _ADDRESSES else value)
        for name, value in given
        if name not in dropped and not name.startswith(_DROPPED_RESPONSE_PREFIXES)
    ]


def _token(given: RawHeaders) -> bytes:
    """The caller's token, which some SDKs send in a second header too."""
    return next(value.split()[-1] for name, value in given if name == b"authorization")


def _named_in_connection(given: RawHeaders) -> frozenset[bytes]:
    """The headers that Connection declares hop-by-hop, except the length and type of the body."""
    named = {word.strip().lower() for name, value in given if name == b"connection" for word in value.split(b",")}
    return frozenset(named - {b"content-length", b"content-type"})


def _public_address(value: bytes, upstream: Upstream, base_url: str) -> bytes:
    """The value with addresses of the service replaced by those of the hub: the service's own may be private."""
    return value.replace(f"{upstream.address}/".encode(), f"{base_url}/".encode())
