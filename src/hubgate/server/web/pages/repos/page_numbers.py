"""Page numbers from `?page=`, for lists that are counted and not too long."""

from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest

# Later pages are too expensive to compute.
LAST = 1_000


def page_number(request: HubRequest) -> int:
    asked = request.query().get("page", "1")
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 6 else 0
    if not 1 <= number <= LAST:
        raise NotFound("The list has no such page.")
    return number
