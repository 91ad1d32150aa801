"""Webhooks of the user or of an organization. On the wire a list is a bare array, a single webhook is wrapped."""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hubgate.client.addresses import segment
from hubgate.client.errors import Conflict, Forbidden, NotFound, Refused
from hubgate.client.models import Delivery, Sent, Watched, Webhook, WebhookOptions
from hubgate.client.session import Call, Session, json_call
from hubgate.client.shaping import camel_case, member, shaped, shaped_list
from hubgate.client.wire import Flow, sleep

Watchable = Watched | Mapping[str, str] | Sequence[str]

# The hub waits up to twenty seconds for the receiver before it responds.
_SEND_SECONDS = 60.0
_PAGE = 200
# States of deliveries that the hub will still send.
_IN_PROGRESS = ("pending", "retrying", "parked")


def create(
    session: Session,
    url: str | None,
    watched: Sequence[Watchable],
    domains: Sequence[str] | None,
    secret: str | None,
    organization: str | None,
    pull: bool,
    options: WebhookOptions,
) -> Flow[Webhook]:
    if (url is None) is not pull:
        raise ValueError("A webhook has a url, or is pulled.")
    body: dict[str, Any] = {"watched": [_watched(item) for item in watched]}
    body |= {"pull": True} if pull else {"url": url}
    body |= _given(domains=_listed(domains), secret=secret, **_options(options))
    return _one((yield from session.json(json_call("POST", _list_path(organization), body))))


def every(session: Session, organization: str | None) -> Flow[list[Webhook]]:
    return shaped_list(Webhook, (yield from session.json(Call("GET", _list_path(organization)))))


def get(session: Session, webhook_id: str, organization: str | None) -> Flow[Webhook]:
    return _one((yield from session.json(Call("GET", _path(organization, webhook_id)))))


def update(
    session: Session,
    webhook_id: str,
    url: str | None,
    watched: Sequence[Watchable] | None,
    domains: Sequence[str] | None,
    secret: str | None,
    overlap_seconds: int | None,
    organization: str | None,
    options: WebhookOptions,
) -> Flow[Webhook]:
    """Change a webhook. None leaves a setting unchanged; an empty secret removes the secret."""
    changed = None if watched is None else [_watched(item) for item in watched]
    body = _given(
        url=url,
        watched=changed,
        domains=_listed(domains),
        secret=secret,
        overlapSeconds=overlap_seconds,
        **_options(options),
    )
    return _one((yield from session.json(json_call("POST", _path(organization, webhook_id), body))))


def switch(session: Session, webhook_id: str, verb: str, organization: str | None) -> Flow[Webhook]:
    """Enable or disable a webhook; `verb` is "enable" or "disable". Both are idempotent."""
    call = Call("POST", f"{_path(organization, webhook_id)}/{verb}", repeatable=True)
    return _one((yield from session.json(call)))


def delete(session: Session, webhook_id: str, organization: str | None) -> Flow[None]:
    yield from session.call(Call("DELETE", _path(organization, webhook_id)))


def test(session: Session, webhook_id: str, organization: str | None) -> Flow[Sent]:
    call = Call("POST", f"{_path(organization, webhook_id)}/test", patience=_SEND_SECONDS)
    return shaped(Sent, (yield from session.json(call)))


def activity(
    session: Session,
    webhook_id: str,
    organization: str | None,
    *,
    state: str | None,
    repo: str | None,
    scope: str | None,
    limit: int | None,
) -> Flow[list[Delivery]]:
    size = _PAGE if limit is None else min(max(limit, 1), _PAGE)
    query = {"state": state, "repo": repo, "scope": scope, "limit": size}
    call = Call("GET", f"{_path(organization, webhook_id)}/logs", query=query)
    return shaped_list(Delivery, (yield from session.pages(call, limit)))


def delivery(session: Session, webhook_id: str, delivery_id: str, organization: str | None) -> Flow[dict[str, Any]]:
    """A delivery as the hub describes it, with payload, request and attempts."""
    value = yield from session.json(Call("GET", f"{_path(organization, webhook_id)}/logs/{segment(delivery_id)}"))
    shaped(Delivery, value)
    found: dict[str, Any] = value
    return found


def replay(session: Session, webhook_id: str, delivery_id: str, organization: str | None) -> Flow[Sent]:
    path = f"{_path(organization, webhook_id)}/replay/{segment(delivery_id)}"
    return shaped(Sent, (yield from session.json(Call("POST", path, patience=_SEND_SECONDS))))


def replay_since(
    session: Session,
    webhook_id: str,
    since: datetime,
    organization: str | None,
    *,
    state: str | None,
    rate: float | None,
    progress: Callable[[int, int], object] | None,
    refused: Callable[[Delivery, Refused], object] | None,
) -> Flow[list[Sent]]:
    """Replay each event since a time once, oldest first. Unfinished deliveries, replays and tests are skipped."""
    if rate is not None and not rate > 0:
        raise ValueError(f"rate is how many a second, more than 0, not {rate}.")
    moment = since if since.tzinfo else since.replace(tzinfo=UTC)
    query = {"state": state, "limit": _PAGE}
    call = Call("GET", f"{_path(organization, webhook_id)}/logs", query=query)
    logged = shaped_list(Delivery, (yield from session.pages(call, None)))
    selected = [entry for entry in reversed(logged) if entry.at >= moment and _is_replayable(entry)]
    sent: list[Sent] = []
    for number, entry in enumerate(selected, 1):
        started = time.monotonic()
        try:
            sent.append((yield from replay(session, webhook_id, entry.id, organization)))
        except (Forbidden, NotFound, Conflict) as error:
            # A conflict on the first replay concerns the webhook, so all others would fail too.
            if refused is None or (isinstance(error, Conflict) and not sent):
                raise
            refused(entry, error)
        if progress is not None:
            progress(number, len(selected))
        if rate is not None and number < len(selected):
            yield from sleep(max(0.0, 1 / rate - (time.monotonic() - started)))
    return sent


def _is_replayable(entry: Delivery) -> bool:
    # The event of a test has the delivery's own id.
    return entry.replay_of is None and entry.event.id != entry.id and entry.state not in _IN_PROGRESS


def _one(value: object) -> Webhook:
    return shaped(Webhook, member(value, "webhook"))


def _list_path(organization: str | None) -> str:
    owner = "" if organization is None else f"/organizations/{segment(organization)}"
    return f"/api{owner}/settings/webhooks"


def _path(organization: str | None, webhook_id: str) -> str:
    return f"{_list_path(organization)}/{segment(webhook_id)}"


def _watched(item: Watchable) -> dict[str, str]:
    kind: object = None
    name: object = None
    if isinstance(item, Watched):
        kind, name = item.type, item.name
    elif isinstance(item, Mapping):
        kind, name = item.get("type"), item.get("name")
    elif isinstance(item, str):
        kind, _, name = item.partition(":")
    if not (isinstance(kind, str) and isinstance(name, str) and kind and name):
        raise ValueError(f'Name what to watch as {{"type": …, "name": …}} or "type:name", not {item!r}.')
    return {"type": kind, "name": name}


def _listed(values: Sequence[str] | None) -> list[str] | None:
    return None if values is None else list(values)


def _options(options: WebhookOptions) -> dict[str, object]:
    """The options by their names on the wire."""
    unknown = options.keys() - WebhookOptions.__annotations__
    if unknown:
        raise TypeError(f"A webhook has no option {min(unknown)!r}.")
    return {camel_case(name): value for name, value in options.items()}


def _given(**members: object) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
