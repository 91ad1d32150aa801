"""The public client classes of hubgate: `Hub` and `AsyncHub`.

The hub itself is `hubgate.server`, the webhook receiver `hubgate.receiver`; the three communicate only over HTTP.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hubgate.client import AsyncHub, Hub

__version__ = "0.1.0"
__all__ = ["AsyncHub", "Hub"]


def __getattr__(name: str) -> object:
    # Imported at first use: the server, the receiver and `hubgate --version` do not need the client.
    if name in __all__:
        from hubgate import client

        return getattr(client, name)
    raise AttributeError(f"module 'hubgate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
