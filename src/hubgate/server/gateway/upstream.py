"""The address of a service behind the gateway."""

import asyncio
import ssl
from urllib.parse import urlsplit

from msgspec import Struct

from hubgate.server.egress.pool import CONNECT_SECONDS, system_tls
from hubgate.server.errors import BadGateway, GatewayTimeout

_DEFAULT_PORTS = {"http": 80, "https": 443}
# The buffer limit of the reader. asyncio stops reading from the socket at twice this size.
_BUFFER_BYTES = 64 * 1024


class Upstream(Struct, frozen=True):
    """A service of the operator. `address` is the base address as configured, and the audience of identities."""

    # For error messages, such as "inference service".
    label: str
    address: str
    host: str
    port: int
    is_tls: bool
    # The value of the Host header.
    authority: str
    # The path of the base address, without a slash at the end; every forwarded path is appended to it.
    prefix: str

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection. Each request has its own: closing it reports a disconnected client to the service, and a
        request is never lost on a connection that the service has just closed.
        """
        tls = system_tls() if self.is_tls else None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await asyncio.open_connection(self.host, self.port, ssl=tls, limit=_BUFFER_BYTES)
        except TimeoutError as error:
            raise GatewayTimeout(f"The {self.label} does not accept connections. Try again later.") from error
        except ssl.SSLError as error:
            # Usually the certificate; the log says why. Trying again does not help.
            message = f"The hub cannot open a TLS connection to the {self.label}. Notify the operator of this hub."
            raise BadGateway(message) from error
        except OSError as error:
            raise BadGateway(f"The {self.label} is not reachable. Try again later.") from error


def parse_upstream(address: str, label: str) -> Upstream | None:
    """Parse a configured base address; None if it is empty."""
    if not address:
        return None
    parts = urlsplit(address)
    port = parts.port or _DEFAULT_PORTS[parts.scheme]
    return Upstream(label, address, parts.hostname or "", port, parts.scheme == "https", parts.netloc, parts.path)
