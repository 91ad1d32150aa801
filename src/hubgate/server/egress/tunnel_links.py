"""The temporary links of receivers behind a tunnel. The hub forwards requests to them itself and never dials them.

A link is `https://<id>.<tunnel host>/` or, without a tunnel host, `{base_url}/tunnel/<id>/`. The addresses of Spaces
are found here too (`hosted_links.py`): the hub treats a Space as a receiver behind a tunnel.
"""

import re
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from hubgate.server.egress.hosted_links import HostedLink, parse_hosted
from hubgate.server.egress.target import AddressNotAllowed, Target

PREFIX = "/tunnel/"
FORWARDED = "/webhooks/"

_DEFAULT_PORTS = {"http": 80, "https": 443}
# A path that is forwarded: one or more names below /webhooks/, and a query.
_FORWARDED = re.compile(r"/webhooks/[^?#]+(\?.*)?\Z", re.DOTALL)


class TunnelLink(NamedTuple):
    """The parsed URL of a webhook behind a tunnel. `path` is the receiver's, with its query."""

    tunnel_id: str
    path: str

    @property
    def receiver(self) -> str:
        """The receiver, for the limit of requests in flight: one sleeping laptop must not take the places of others."""
        return self.tunnel_id


class TunnelLinks:
    def __init__(self, base_url: str, tunnel_host: str = "", *, runs_spaces: bool = False) -> None:
        public = urlsplit(base_url)
        self._runs_spaces, self._hub_port = runs_spaces, public.port or _DEFAULT_PORTS.get(public.scheme, 0)
        self._base_url, self._scheme, self._hub = base_url, public.scheme, public.hostname or ""
        self.has_own_host = bool(tunnel_host)
        tunnel = urlsplit(f"{public.scheme}://{tunnel_host}") if tunnel_host else public
        self._authority, self._host = tunnel_host, tunnel.hostname or ""
        self._port = tunnel.port or _DEFAULT_PORTS.get(public.scheme, 0)

    def url_of(self, tunnel_id: str) -> str:
        if self.has_own_host:
            return f"{self._scheme}://{tunnel_id}.{self._authority}/"
        return f"{self._base_url}{PREFIX}{tunnel_id}/"

    def find(self, target: Target) -> TunnelLink | HostedLink | None:
        """The link that a URL is, or None. A link to a path that is not forwarded is rejected."""
        hosted = self._find_hosted(target)
        if hosted is not None:
            return hosted
        if target.scheme != self._scheme or target.port != self._port:
            return None
        if self.has_own_host:
            tunnel_id, path = self.id_of_host(target.host), target.path_and_query
            if tunnel_id is None:
                return None
        else:
            if target.host != self._host or not target.path_and_query.startswith(PREFIX):
                return None
            tunnel_id, slash, path = target.path_and_query.removeprefix(PREFIX).partition("/")
            path = slash + path
        if not is_forwarded(path):
            raise AddressNotAllowed(f"a temporary link forwards only paths that begin with {FORWARDED}")
        return TunnelLink(tunnel_id, path)

    def _find_hosted(self, target: Target) -> HostedLink | None:
        at_hub = (target.scheme, target.host, target.port) == (self._scheme, self._hub, self._hub_port)
        found = parse_hosted(target.path_and_query) if at_hub and self._runs_spaces else None
        if found is not None and not is_forwarded(found.path):
            raise AddressNotAllowed(f"a Space gets only requests to paths that begin with {FORWARDED}")
        return found

    def id_of_host(self, host: str) -> str | None:
        """The id in a host name, which may be followed by a port; None if the host does not belong to a link."""
        name = host.lower().partition(":")[0].removesuffix(".")
        if not self.has_own_host or name == self._hub:
            return None
        if name == self._host:
            return ""
        return name.removesuffix(f".{self._host}") if name.endswith(f".{self._host}") else None


def is_forwarded(path: str) -> bool:
    """Whether a receiver behind a tunnel gets requests to this path. No segment may lead out of /webhooks/."""
    segments = unquote(path.partition("?")[0]).replace("\\", "/").split("/")
    return _FORWARDED.match(path) is not None and not {".", ".."} & set(segments)


NO_LINKS = TunnelLinks("")
