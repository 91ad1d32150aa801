"""Spaces that the hub runs: state, restart and pause, secrets, logs."""

import json
from collections.abc import Callable

from hubgate.client.addresses import api_path
from hubgate.client.codec import decode, member
from hubgate.client.errors import UnexpectedResponse
from hubgate.client.models import LogLine, SpaceRuntime, SpaceSecret
from hubgate.client.operations.webhook_events import SILENCE_SECONDS, STREAM_TYPE, EventSink
from hubgate.client.session import Call, Session, json_call
from hubgate.client.wire import Flow


def space_runtime(session: Session, space: str) -> Flow[SpaceRuntime]:
    return decode(SpaceRuntime, (yield from session.json(Call("GET", f"{_path(space)}/runtime"))))


def restart_space(session: Session, space: str, *, factory: bool = False) -> Flow[SpaceRuntime]:
    """Build and start a Space again; `factory`: also install its requirements again."""
    query = {"factory": "true" if factory else None}
    call = json_call("POST", f"{_path(space)}/restart", {}, query=query)
    return decode(SpaceRuntime, (yield from session.json(call)))


def pause_space(session: Session, space: str) -> Flow[SpaceRuntime]:
    """Stop a Space until it is restarted."""
    return decode(SpaceRuntime, (yield from session.json(json_call("POST", f"{_path(space)}/pause", {}))))


def list_space_secrets(session: Session, space: str) -> Flow[list[SpaceSecret]]:
    """The names of a Space's secrets. Nobody can read the values."""
    return _secrets((yield from session.json(Call("GET", f"{_path(space)}/secrets"))))


def set_space_secret(
    session: Session, space: str, key: str, value: str, *, description: str | None = None
) -> Flow[list[SpaceSecret]]:
    body = {"key": key, "value": value, "description": description}
    call = json_call("POST", f"{_path(space)}/secrets", body, repeatable=True)
    return _secrets((yield from session.json(call)))


def delete_space_secret(session: Session, space: str, key: str) -> Flow[list[SpaceSecret]]:
    return _secrets((yield from session.json(json_call("DELETE", f"{_path(space)}/secrets", {"key": key}))))


def read_space_log(
    session: Session,
    space: str,
    on_line: Callable[[LogLine], object],
    *,
    build: bool = False,
    follow: bool = False,
    after: int | None = None,
) -> Flow[None]:
    """Call `on_line` for each stored line of a log, after the line with the number `after`; with `follow`, also for new
    lines as they are written.

    With `follow` it returns when the hub ends the stream, and raises ConnectionLost when the connection is lost. In
    both cases call it again with the number of the last line.
    """
    sink = EventSink(lambda data: on_line(_line(data)), None)
    headers = {"Accept": STREAM_TYPE} | ({} if after is None else {"Last-Event-ID": str(after)})
    call = Call(
        "GET",
        f"{_path(space)}/logs/{'build' if build else 'run'}",
        query={"follow": None if follow else "false"},
        headers=headers,
        sink=sink,
        read_timeout=SILENCE_SECONDS,
        retried=False,
    )
    yield from session.call(call)
    if not sink.is_open:
        raise UnexpectedResponse("The hub did not answer with a log.")


def _path(space: str) -> str:
    return api_path(space, "space")


def _secrets(value: object) -> list[SpaceSecret]:
    if not isinstance(value, dict):
        raise UnexpectedResponse("The hub's response is not a list of secrets.")
    return [
        decode(SpaceSecret, {"key": key, **(about if isinstance(about, dict) else {})}) for key, about in value.items()
    ]


def _line(data: bytes) -> LogLine:
    try:
        value = json.loads(data)
        return decode(LogLine, {**value, "data": str(member(value, "data")).rstrip("\n")})
    except (ValueError, RecursionError, TypeError):
        raise UnexpectedResponse("The hub sent a line that cannot be read.") from None
