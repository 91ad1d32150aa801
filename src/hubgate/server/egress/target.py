"""Parses and checks the URL of an outgoing request, without DNS or other I/O."""

import ipaddress
import re
from functools import lru_cache
from urllib.parse import urlsplit

from msgspec import Struct

from hubgate.server.egress.addresses import Address
from hubgate.server.errors import Unprocessable

LONGEST_URL = 2048
DEFAULT_PORTS = {"http": 80, "https": 443}

# The blocked ports of the Fetch standard, and those of databases and container engines.
BLOCKED_PORTS = frozenset(
    map(
        int,
        """
        0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119
        123 135 137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989
        990 993 995 1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080
        2375 2376 3306 5432 6379 9200 11211 27017
        """.split(),  # noqa: SIM905 -- a paragraph of numbers reads better than a hundred lines
    )
)

# Printable ASCII without the characters that parsers disagree about.
_CLEAN = re.compile(r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+\Z")
_NAME = re.compile(r"(?=.{1,253}\Z)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?\Z")
# Some parsers treat a host whose last label is numeric as an IPv4 address: 127.1, 0x7f.1, 2130706433.
_NUMERIC = re.compile(r"(0x[0-9a-f]*|[0-9]+)\Z")


class AddressNotAllowed(Unprocessable):
    """The address is not allowed. The message says which rule it breaks."""

    def __init__(self, rule: str) -> None:
        super().__init__(f"This address is not allowed: {rule}.")


class Target(Struct, frozen=True):
    """A parsed URL. `literal` is set if the host is an IP address, which needs no resolution."""

    scheme: str
    host: str
    port: int
    # As sent.
    path_and_query: str
    literal: Address | None

    @property
    def is_tls(self) -> bool:
        return self.scheme == "https"

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


@lru_cache(maxsize=4096)
def parse_target(url: str) -> Target:
    if len(url) > LONGEST_URL:
        raise AddressNotAllowed(f"it is longer than {LONGEST_URL:,} characters")
    if not _CLEAN.match(url):
        raise AddressNotAllowed(_problem_with(url))
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise AddressNotAllowed("it is malformed") from None
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS:
        raise AddressNotAllowed("it must begin with http:// or https://")
    if "@" in parts.netloc:
        raise AddressNotAllowed("it contains a user name or password")
    if parts.fragment or url.endswith("#"):
        raise AddressNotAllowed("it contains a fragment")
    port = DEFAULT_PORTS[scheme] if port is None else port
    if port in BLOCKED_PORTS:
        raise AddressNotAllowed(f"port {port} belongs to another kind of service")
    host, literal = _host(parts.netloc)
    request = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(scheme, host, port, request, literal)


def _problem_with(url: str) -> str:
    if not url:
        return "it is empty"
    odd = next(character for character in url if not _CLEAN.match(character))
    if not odd.isascii():
        return "it contains a character outside ASCII"
    if odd == " ":
        return "it contains a space"
    if not odd.isprintable():
        return "it contains a control character"
    return f"it contains {odd}, which must be written %{ord(odd):02X}"


def _host(netloc: str) -> tuple[str, Address | None]:
    if netloc.startswith("["):
        inside, bracket, rest = netloc[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")) or "%" in inside:
            raise AddressNotAllowed("it is malformed")
        try:
            return inside.lower(), ipaddress.IPv6Address(inside)
        except ValueError:
            raise AddressNotAllowed("its host is not a valid IPv6 address") from None
    host = netloc.rpartition(":")[0] if ":" in netloc else netloc
    host = host.lower().removesuffix(".")
    if not _NAME.match(host):
        raise AddressNotAllowed("its host is not a valid host name")
    if _NUMERIC.match(host.rpartition(".")[2]):
        try:
            # Only four decimal numbers without leading zeros: parsers disagree about every other spelling.
            return host, ipaddress.IPv4Address(host)
        except ValueError:
            raise AddressNotAllowed("its host is an ambiguous IPv4 address; write it as four decimal numbers") from None
    return host, None
