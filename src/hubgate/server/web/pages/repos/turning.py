"""Which page of a list `?page=` asks for, where a list is counted and not too long."""

from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest

# So far a list may be turned page by page; further on it costs more than anyone reads.
LAST = 1_000


def turned(request: HubRequest) -> int:
    asked = request.query().get("page", "1")
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 6 else 0
    if not 1 <= number <= LAST:
        raise NotFound("The list has no such page.")
    return number
