"""Webhooks of the user or of an organization. On the wire, only a single webhook is wrapped in an object."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Unpack

from hubgate.client.addresses import path_segment
from hubgate.client.codec import camel_case, decode, decode_list, member
from hubgate.client.models import Delivery, Replay, SentDelivery, Watched, Webhook, WebhookOptions
from hubgate.client.session import Call, Session, json_call
from hubgate.client.wire import Flow, sleep

Watchable = Watched | Mapping[str, str] | Sequence[str]

# The hub waits up to twenty seconds for the receiver before it responds.
_SEND_SECONDS = 60.0
_PAGE = 200
_POLL_SECONDS = 0.5
# The states of deliveries that can be replayed.
REPLAYABLE = ("failed", "skipped", "delivered", "stored")


def create_webhook(
    session: Session,
    url: str | None = None,
    *,
    watched: Sequence[Watchable],
    domains: Sequence[str] | None = None,
    secret: str | None = None,
    organization: str | None = None,
    pull: bool = False,
    **options: Unpack[WebhookOptions],
) -> Flow[Webhook]:
    """Create a webhook that sends events to `url` or, with `pull=True`, stores them for the caller to fetch.

    Each item of `watched` is "type:name" or {"type": …, "name": …}; the type is user, org, model, dataset or space.
    """
    if (url is None) is not pull:
        raise ValueError("Set either url or pull=True.")
    body: dict[str, Any] = {"watched": [_watched(item) for item in watched]}
    body |= {"pull": True} if pull else {"url": url}
    body |= _without_none(domains=_as_list(domains), secret=secret, **_options(options))
    return _webhook_from((yield from session.json(json_call("POST", _list_path(organization), body))))


def list_webhooks(session: Session, *, organization: str | None = None) -> Flow[list[Webhook]]:
    return decode_list(Webhook, (yield from session.json(Call("GET", _list_path(organization)))))


def get_webhook(session: Session, webhook_id: str, *, organization: str | None = None) -> Flow[Webhook]:
    return _webhook_from((yield from session.json(Call("GET", _path(organization, webhook_id)))))


def update_webhook(
    session: Session,
    webhook_id: str,
    url: str | None = None,
    watched: Sequence[Watchable] | None = None,
    domains: Sequence[str] | None = None,
    *,
    secret: str | None = None,
    overlap_seconds: int | None = None,
    organization: str | None = None,
    **options: Unpack[WebhookOptions],
) -> Flow[Webhook]:
    """Change a webhook. Arguments that are None leave the setting unchanged.

    `secret=""` removes the secret. After a change of secret, deliveries are also signed with the old secret for
    `overlap_seconds`.
    """
    changed = None if watched is None else [_watched(item) for item in watched]
    body = _without_none(
        url=url,
        watched=changed,
        domains=_as_list(domains),
        secret=secret,
        overlapSeconds=overlap_seconds,
        **_options(options),
    )
    return _webhook_from((yield from session.json(json_call("POST", _path(organization, webhook_id), body))))


def enable_webhook(session: Session, webhook_id: str, *, organization: str | None = None) -> Flow[Webhook]:
    return (yield from _switch(session, webhook_id, "enable", organization))


def disable_webhook(session: Session, webhook_id: str, *, organization: str | None = None) -> Flow[Webhook]:
    return (yield from _switch(session, webhook_id, "disable", organization))


def _switch(session: Session, webhook_id: str, verb: str, organization: str | None) -> Flow[Webhook]:
    # Enabling and disabling are idempotent.
    call = Call("POST", f"{_path(organization, webhook_id)}/{verb}", repeatable=True)
    return _webhook_from((yield from session.json(call)))


def delete_webhook(session: Session, webhook_id: str, *, organization: str | None = None) -> Flow[None]:
    yield from session.call(Call("DELETE", _path(organization, webhook_id)))


def test_webhook(session: Session, webhook_id: str, *, organization: str | None = None) -> Flow[SentDelivery]:  # noqa: PT028
    """Send a sample delivery, and wait up to twenty seconds for the receiver's response."""
    call = Call("POST", f"{_path(organization, webhook_id)}/test", read_timeout=_SEND_SECONDS)
    return decode(SentDelivery, (yield from session.json(call)))


def webhook_activity(
    session: Session,
    webhook_id: str,
    *,
    state: str | None = None,
    repo: str | None = None,
    scope: str | None = None,
    limit: int | None = 100,
    organization: str | None = None,
) -> Flow[list[Delivery]]:
    """List deliveries, newest first."""
    size = _PAGE if limit is None else min(max(limit, 1), _PAGE)
    query = {"state": state, "repo": repo, "scope": scope, "limit": size}
    call = Call("GET", f"{_path(organization, webhook_id)}/logs", query=query)
    return decode_list(Delivery, (yield from session.pages(call, limit)))


def get_delivery(
    session: Session, webhook_id: str, delivery_id: str, *, organization: str | None = None
) -> Flow[dict[str, Any]]:
    """Get a delivery with its payload, request and attempts."""
    value = yield from session.json(Call("GET", f"{_path(organization, webhook_id)}/logs/{path_segment(delivery_id)}"))
    decode(Delivery, value)
    found: dict[str, Any] = value
    return found


def replay_webhook(
    session: Session, webhook_id: str, delivery_id: str, *, organization: str | None = None
) -> Flow[SentDelivery]:
    """Send a delivery again, to the webhook's current URL and with its current secret."""
    path = f"{_path(organization, webhook_id)}/replay/{path_segment(delivery_id)}"
    return decode(SentDelivery, (yield from session.json(Call("POST", path, read_timeout=_SEND_SECONDS))))


def start_replay(
    session: Session,
    webhook_id: str,
    since: datetime,
    *,
    states: Sequence[str] = REPLAYABLE,
    rate: int | None = None,
    organization: str | None = None,
) -> Flow[Replay]:
    """Let the hub replay all deliveries since a given time that are in one of these states, at most `rate` per second.

    The hub continues on its own, also after a restart. See `follow_replay` and `cancel_replay`.
    """
    moment = since if since.tzinfo else since.replace(tzinfo=UTC)
    body = _without_none(since=moment.isoformat(), states=_as_list(states), rate=rate)
    return decode(Replay, (yield from session.json(json_call("POST", _replays_path(organization, webhook_id), body))))


def get_replay(session: Session, webhook_id: str, replay_id: str, *, organization: str | None = None) -> Flow[Replay]:
    call = Call("GET", f"{_replays_path(organization, webhook_id)}/{path_segment(replay_id)}")
    return decode(Replay, (yield from session.json(call)))


def cancel_replay(
    session: Session, webhook_id: str, replay_id: str, *, organization: str | None = None
) -> Flow[Replay]:
    """Cancel a replay. One that has ended stays as it is."""
    call = Call("DELETE", f"{_replays_path(organization, webhook_id)}/{path_segment(replay_id)}")
    return decode(Replay, (yield from session.json(call)))


def follow_replay(
    session: Session,
    webhook_id: str,
    replay_id: str,
    *,
    progress: Callable[[int, int], object] | None = None,
    organization: str | None = None,
) -> Flow[Replay]:
    """Wait until a replay has ended. `progress` receives the number of deliveries sent and the total."""
    while True:
        replay = yield from get_replay(session, webhook_id, replay_id, organization=organization)
        if progress is not None:
            progress(replay.done, replay.total)
        if replay.state != "running":
            return replay
        yield from sleep(_POLL_SECONDS)


def replay_webhook_since(
    session: Session,
    webhook_id: str,
    since: datetime,
    *,
    state: str | None = None,
    rate: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    organization: str | None = None,
) -> Flow[Replay]:
    """Replay all deliveries since a given time, at most `rate` per second, and wait until all have been sent.

    With `state="failed"`, only failed deliveries are replayed. If the caller stops waiting, the hub continues.
    """
    states = REPLAYABLE if state is None else (state,)
    replay = yield from start_replay(session, webhook_id, since, states=states, rate=rate, organization=organization)
    return (yield from follow_replay(session, webhook_id, replay.id, progress=progress, organization=organization))


def _replays_path(organization: str | None, webhook_id: str) -> str:
    return f"{_path(organization, webhook_id)}/replays"


def _webhook_from(value: object) -> Webhook:
    return decode(Webhook, member(value, "webhook"))


def _list_path(organization: str | None) -> str:
    owner = "" if organization is None else f"/organizations/{path_segment(organization)}"
    return f"/api{owner}/settings/webhooks"


def _path(organization: str | None, webhook_id: str) -> str:
    return f"{_list_path(organization)}/{path_segment(webhook_id)}"


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
        raise ValueError(f'An item of watched is {{"type": …, "name": …}} or "type:name", not {item!r}.')
    return {"type": kind, "name": name}


def _as_list(values: Sequence[str] | None) -> list[str] | None:
    return None if values is None else list(values)


def _options(options: WebhookOptions) -> dict[str, object]:
    """The options by their names on the wire."""
    unknown = options.keys() - WebhookOptions.__annotations__
    if unknown:
        raise TypeError(f"A webhook has no option {min(unknown)!r}.")
    return {camel_case(name): value for name, value in options.items()}


def _without_none(**members: object) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
