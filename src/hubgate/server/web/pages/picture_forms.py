"""Forms that upload a picture: what the pages of users, organizations and apps share."""

from typing import Any

from hubgate.server.accounts.pictures.model import FIELD, MAX_BYTES
from hubgate.server.edge.routes import MIB
from hubgate.server.errors import FieldErrors
from hubgate.server.http.request import HubRequest

# Somewhat more than a picture may have: most that are too large are answered with the form.
ROUTE_OPTIONS: dict[str, Any] = {"body_cap": 8 * MIB, "has_files": True}


async def read_picture(request: HubRequest) -> bytes:
    """The file of the form. The edge has received the whole body before, so permissions are current (attack O44)."""
    part = await request.form_files.next_file()
    if part is None or part.field != FIELD:
        raise FieldErrors({FIELD: "Choose a picture."})
    data = b"".join([content async for content in request.form_files.content()])
    if len(data) > MAX_BYTES:
        raise FieldErrors({FIELD: f"A picture may have at most {MAX_BYTES:,} bytes."})
    return data
