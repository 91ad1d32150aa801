"""`/docs/webhooks`: what a receiver gets, how it verifies the sender, and every kind of event."""

from collections.abc import Mapping
from typing import Any

from hubgate.server.clock import HOUR, MINUTE, SECOND
from hubgate.server.edge.routes import Route, public
from hubgate.server.events.kinds import Kind
from hubgate.server.events.schemas import REPO, TRUNCATED, WEBHOOK, Schema
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.web.api.event_schemas import PATH as SCHEMAS
from hubgate.server.web.pages.docs.navigation import side_of
from hubgate.server.web.rendering import Pages
from hubgate.server.webhooks.model import BACKOFF

PATH = "/docs/webhooks"
HEADERS = (
    (
        "webhook-id",
        "The id of the delivery. A retry has the same id, so that you can detect duplicates; a replay has a new one.",
    ),
    ("webhook-timestamp", "The Unix time of this attempt. Reject deliveries that are more than five minutes off."),
    (
        "webhook-signature",
        "Signatures, separated by spaces: v1 with the secret, otherwise v1a with the webhook's own key.",
    ),
    ("X-Webhook-Secret", "The secret itself, if one is set."),
    ("X-Hubgate-Webhook", "The id of the webhook."),
    ("X-Hubgate-Attempt", "1 for the first attempt."),
    ("X-Hubgate-Sequence", "The number of the event in its repo; 0 for a test."),
    (
        "X-Hubgate-Depth",
        "How many deliveries in a row led to the change. To stop loops, send it with each change by your receiver.",
    ),
    ("X-Hubgate-Test", "1 for a test, otherwise absent."),
)
_CONTENTS = (
    ("#receive", "Receive"),
    ("#verify", "Verify"),
    ("#retries", "Retries"),
    ("#events", "Events"),
    ("#every", "In every event"),
)
_UNITS = ((HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))


def routes(pages: Pages) -> list[Route]:
    # Without `event`: it identifies the kind, which the heading already shows.
    every = _members({"repo": REPO, "webhook": WEBHOOK, "truncated": TRUNCATED})
    kinds = [(kind, _members(kind.extras), f"{SCHEMAS}/{kind.full_name}") for kind in Kind]
    waits = [_format_duration(wait) for wait in BACKOFF]

    async def show(request: HubRequest) -> Response:
        return pages.page(
            request,
            "docs/webhooks.html",
            contents=_CONTENTS,
            **side_of(PATH),
            headers=HEADERS,
            every=every,
            kinds=kinds,
            waits=waits,
            schemas=SCHEMAS,
            runs_spaces=pages.settings.runs_spaces,
            base_url=pages.settings.base_url,
        )

    return [Route("GET", PATH, public(show), Surface.PAGE, "What webhooks send, and all kinds of events")]


def _members(schemas: Mapping[str, Schema]) -> list[tuple[str, str, bool]]:
    """Every field: its path, its meaning, and whether it is always present."""
    found: list[tuple[str, str, bool]] = []

    def walk(path: str, schema: Schema, always: bool) -> None:
        inner: dict[str, Any] = schema.get("items", schema)
        if "properties" not in inner:
            found.append((path, _value(schema), always))
            return
        suffix = "[]" if "items" in schema else ""
        for name, member in inner["properties"].items():
            walk(f"{path}{suffix}.{name}" if path else name, member, name in inner["required"])

    for name, schema in schemas.items():
        walk(name, schema, name != "truncated")
    return found


def _value(schema: Schema) -> str:
    description = str(schema["description"])
    if "const" in schema:
        return f"{str(schema['const']).lower()}. {description}"
    return f"{', '.join(schema['enum'])}. {description}" if "enum" in schema else description


def _format_duration(duration: int) -> str:
    unit, name = next((unit, name) for unit, name in _UNITS if duration % unit == 0)
    return f"{duration // unit} {name}"
