"""Every table, by subject. Migrations build them; a test holds the two against each other.

Columns are text, blob or 64-bit integer, so that no converter stands between driver and code. Times are integer
microseconds since the epoch (`clock.py`). Nothing that could be presented as a credential is stored.
"""

from hubgate.server.storage.schema import accounts, audit, oauth, repos, service, webhooks
from hubgate.server.storage.schema.base import metadata

__all__ = ["accounts", "audit", "metadata", "oauth", "repos", "service", "webhooks"]
