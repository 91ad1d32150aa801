"""Maps a delivery to the parameters of a handler. The signature is inspected once, when the handler is registered.

Annotations decide first: WebhookPayload, Request (ours, Starlette's or FastAPI's), dict, bytes, a pydantic model.
Without an annotation the name decides: `payload`, `request`, `body`. A single parameter of another name is the payload.
"""

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hubgate.receiver.payload import PayloadError, WebhookPayload
from hubgate.receiver.request import Request

Handler = Callable[..., Any]


@dataclass(frozen=True)
class Delivery:
    """The data for a handler. `payload` is None if the body is not a payload and the handler does not need one."""

    path: str
    request: Request
    value: Any
    payload: WebhookPayload | None


@dataclass(frozen=True)
class Argument:
    """How to fill a parameter. With `needs_payload`, the body must be a valid payload."""

    value: Callable[[Delivery], Any]
    needs_payload: bool


_PAYLOAD = Argument(lambda delivery: delivery.payload, needs_payload=True)
_VALUE = Argument(lambda delivery: delivery.value, needs_payload=True)
_REQUEST = Argument(lambda delivery: delivery.request, needs_payload=False)
_BODY = Argument(lambda delivery: delivery.request.content, needs_payload=False)
_BY_NAME = {
    "WebhookPayload": _PAYLOAD,
    "Request": _REQUEST,
    "payload": _PAYLOAD,
    "request": _REQUEST,
    "body": _BODY,
}


@dataclass(frozen=True)
class Plan:
    """How to call a handler: the values for its parameters."""

    handler: Handler
    positional: tuple[Argument, ...]
    named: Mapping[str, Argument]

    @property
    def needs_payload(self) -> bool:
        return any(argument.needs_payload for argument in (*self.positional, *self.named.values()))

    @property
    def is_async(self) -> bool:
        called = self.handler if inspect.isroutine(self.handler) else getattr(type(self.handler), "__call__", None)  # noqa: B004
        return inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(self.handler)

    def bind(self, delivery: Delivery) -> Callable[[], Any]:
        """The call with its arguments bound. Raises PayloadError if the handler's own model rejects the payload."""
        given = [argument.value(delivery) for argument in self.positional]
        return partial(
            self.handler, *given, **{name: argument.value(delivery) for name, argument in self.named.items()}
        )


def plan_for(handler: Handler) -> Plan:
    """Inspect a handler's signature. Raises TypeError for a parameter that a delivery cannot fill."""
    positional: list[Argument] = []
    named: dict[str, Argument] = {}
    hints = _hints(handler)
    parameters = [
        parameter
        for parameter in inspect.signature(handler).parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    required = [parameter for parameter in parameters if parameter.default is parameter.empty]
    for parameter in parameters:
        argument = _argument_for(parameter.name, _plain(hints.get(parameter.name)), only=required == [parameter])
        if argument is None and parameter.default is parameter.empty:
            name = getattr(handler, "__qualname__", type(handler).__name__)
            raise TypeError(f"{name}: a delivery has no value for the parameter {parameter.name!r}.")
        if argument is not None and parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(argument)
        elif argument is not None:
            named[parameter.name] = argument
    return Plan(handler, tuple(positional), named)


def _argument_for(name: str, kind: Any, *, only: bool) -> Argument | None:
    if isinstance(kind, type):
        return _argument_by_type(kind)
    # An annotation that could not be resolved is a string with the type's name.
    written = kind.rpartition(".")[2] if isinstance(kind, str) else ""
    return _BY_NAME.get(written) or _BY_NAME.get(name) or (_PAYLOAD if only else None)


def _argument_by_type(kind: Any) -> Argument | None:
    if issubclass(kind, WebhookPayload):
        return _PAYLOAD
    if issubclass(kind, Request):
        return _REQUEST
    if issubclass(kind, bytes):
        return _BODY
    # Before Mapping, because Starlette's requests are mappings too.
    if kind.__name__ == "Request" and kind.__module__.partition(".")[0] in ("starlette", "fastapi"):
        return Argument(lambda delivery: kind(delivery.request.scope, delivery.request.receive()), needs_payload=False)
    if issubclass(kind, Mapping):
        return _VALUE
    if hasattr(kind, "model_validate"):
        return Argument(lambda delivery: _validated(kind, delivery.value), needs_payload=True)
    return None


def _validated(model: Any, value: Any) -> Any:
    try:
        return model.model_validate(value)
    except ValueError as error:
        raise PayloadError(str(error)) from error


def _hints(handler: Handler) -> dict[str, Any]:
    """The annotations as types, or as written if they cannot be resolved."""
    function = handler if inspect.isroutine(handler) else type(handler).__call__
    try:
        return typing.get_type_hints(inspect.unwrap(function), include_extras=False)
    # An annotation can be any expression, so resolving it can raise any exception.
    except Exception:
        return dict(getattr(inspect.unwrap(function), "__annotations__", {}))


def _plain(hint: Any) -> Any:
    """The type without `| None` and without type parameters; None if the annotation is Any or object."""
    if hint is Any or hint is object:
        return None
    options = [option for option in typing.get_args(hint) if option is not type(None)]
    if len(options) == 1 and type(None) in typing.get_args(hint):
        return _plain(options[0])
    return typing.get_origin(hint) or hint
