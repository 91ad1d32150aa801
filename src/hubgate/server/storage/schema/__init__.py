"""All tables, by subject. Migrations create them; a test compares the result with these definitions.

Columns are text, blob or 64-bit integer, so that values need no conversion between driver and code. Times are integer
microseconds since the epoch (`clock.py`). No value that could be used as a credential is stored in readable form.
"""

from hubgate.server.storage.schema import (
    accounts,
    audit,
    collections,
    gating,
    oauth,
    repos,
    resource_servers,
    search,
    service,
    spaces,
    tunnels,
    webhooks,
    xet,
)
from hubgate.server.storage.schema.base import metadata

__all__ = [
    "accounts",
    "audit",
    "collections",
    "gating",
    "metadata",
    "oauth",
    "repos",
    "resource_servers",
    "search",
    "service",
    "spaces",
    "tunnels",
    "webhooks",
    "xet",
]
