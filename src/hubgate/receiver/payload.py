"""The payload of a delivery as objects: known members are typed, unknown members are preserved.

`payload.repo.head_sha` and `payload.repo.headSha` are equivalent. Only `event` and the repo's type and name are
required. A known member of the wrong type is rejected; an unknown member may have any value.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar


class PayloadError(ValueError):
    """The body is not a valid payload; the message says where."""


# The hub's payloads have five levels. Recursive code in a handler is safe at this depth.
MAX_LEVELS = 100

_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def _snake(name: str) -> str:
    return _CAPITAL.sub(lambda found: "_" + found[1], name).lower()


class PayloadObject:
    """An object in the payload. Members are accessible by their name on the wire and in snake_case."""

    # Name on the wire -> its type, or a list with the type of its items.
    _known: ClassVar[Mapping[str, Any]] = {}
    _required: ClassVar[tuple[str, ...]] = ()

    def __init__(self, raw: Mapping[str, Any], where: str = "payload") -> None:
        values: dict[str, Any] = {}
        for wire, kind in self._known.items():
            value = raw.get(wire, raw.get(_snake(wire)))
            if value is None and wire in self._required:
                raise PayloadError(f"{where}.{wire} is missing.")
            values[_snake(wire)] = None if value is None else _typed(value, kind, f"{where}.{wire}")
        for name, value in raw.items():
            values.setdefault(_snake(name), value)
        self.__dict__["_raw"] = dict(raw)
        self.__dict__["_values"] = values

    def __getattr__(self, name: str) -> Any:
        values: dict[str, Any] = self.__dict__.get("_values", {})
        for spelling in (name, _snake(name)):
            if spelling in values and not name.startswith("_"):
                return _wrapped(values[spelling])
        raise AttributeError(f"{type(self).__name__} has no {name!r}.")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A payload cannot be changed: {name}")

    def __getitem__(self, name: str) -> Any:
        """A member by its name on the wire, as it was sent."""
        return self._raw[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __contains__(self, name: object) -> bool:
        return name in self._raw

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PayloadObject) and self._raw == other._raw

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._raw!r})"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    @property
    def raw(self) -> dict[str, Any]:
        """The object as it was sent."""
        raw: dict[str, Any] = self.__dict__["_raw"]
        return raw

    def to_dict(self) -> dict[str, Any]:
        return dict(self.raw)

    # Handlers written for pydantic models use these names.
    def model_dump(self, **_: Any) -> dict[str, Any]:
        return dict(self.raw)

    def model_dump_json(self, *, indent: int | None = None, **_: Any) -> str:
        return json.dumps(self.raw, indent=indent, ensure_ascii=False)

    # Pickle and copy would otherwise call __getattr__ before __dict__ is filled.
    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.raw,)


class Owner(PayloadObject):
    id: str | None

    _known: ClassVar = {"id": str}


class Url(PayloadObject):
    web: str | None
    api: str | None

    _known: ClassVar = {"web": str, "api": str}


class Event(PayloadObject):
    """The event. `action` and `scope` may be unknown to this version."""

    action: str
    scope: str

    _known: ClassVar = {"action": str, "scope": str}
    _required: ClassVar = ("action", "scope")


class Repo(PayloadObject):
    type: str
    name: str
    id: str | None
    private: bool | None
    url: Url | None
    owner: Owner | None
    head_sha: str | None
    tags: list[str] | None
    subdomain: str | None

    _known: ClassVar = {
        "type": str,
        "name": str,
        "id": str,
        "private": bool,
        "url": Url,
        "owner": Owner,
        "headSha": str,
        "tags": [str],
        "subdomain": str,
    }
    _required: ClassVar = ("type", "name")


class Changes(PayloadObject):
    base: str | None
    merge_commit_id: str | None

    _known: ClassVar = {"base": str, "mergeCommitId": str}


class Discussion(PayloadObject):
    id: str | None
    num: int | None
    title: str | None
    status: str | None
    is_pull_request: bool | None
    author: Owner | None
    url: Url | None
    changes: Changes | None
    pinned: bool | None

    _known: ClassVar = {
        "id": str,
        "num": int,
        "title": str,
        "status": str,
        "isPullRequest": bool,
        "author": Owner,
        "url": Url,
        "changes": Changes,
        "pinned": bool,
    }


class Comment(PayloadObject):
    id: str | None
    author: Owner | None
    content: str | None
    hidden: bool | None
    url: Url | None

    _known: ClassVar = {"id": str, "author": Owner, "content": str, "hidden": bool, "url": Url}


class Webhook(PayloadObject):
    id: str | None
    version: int | None

    _known: ClassVar = {"id": str, "version": int}


class MovedTo(PayloadObject):
    name: str | None
    owner: Owner | None

    _known: ClassVar = {"name": str, "owner": Owner}


class UpdatedRef(PayloadObject):
    ref: str
    old_sha: str | None
    new_sha: str | None

    _known: ClassVar = {"ref": str, "oldSha": str, "newSha": str}
    _required: ClassVar = ("ref",)


class UpdatedConfig(PayloadObject):
    private: bool | None

    _known: ClassVar = {"private": bool}


class WebhookPayload(PayloadObject):
    event: Event
    repo: Repo
    webhook: Webhook | None
    discussion: Discussion | None
    comment: Comment | None
    moved_to: MovedTo | None
    updated_refs: list[UpdatedRef] | None
    updated_config: UpdatedConfig | None
    truncated: bool | None

    _known: ClassVar = {
        "event": Event,
        "repo": Repo,
        "webhook": Webhook,
        "discussion": Discussion,
        "comment": Comment,
        "movedTo": MovedTo,
        "updatedRefs": [UpdatedRef],
        "updatedConfig": UpdatedConfig,
        "truncated": bool,
    }
    _required: ClassVar = ("event", "repo")

    @property
    def kind(self) -> str:
        """Scope and action, such as `repo.content.update`."""
        return f"{self.event.scope}.{self.event.action}"


def parse_json(body: bytes) -> Any:
    """Parse strict JSON. Raises PayloadError for anything else."""
    try:
        value = json.loads(body.decode(), parse_constant=_reject_constant, parse_float=_finite)
    # Deep nesting raises RecursionError, numbers with thousands of digits raise ValueError.
    except (ValueError, RecursionError):
        raise PayloadError("The body is not JSON.") from None
    level = [value]
    for _ in range(MAX_LEVELS):
        level = [inner for outer in level for inner in _members(outer) if isinstance(inner, dict | list)]
        if not level:
            return value
    raise PayloadError(f"The body is nested deeper than {MAX_LEVELS} levels.")


def _members(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _finite(text: str) -> float:
    """Reject `1e999`, which Python parses as Infinity, which cannot be written as JSON."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(text)
    return number


def _reject_constant(text: str) -> Any:
    raise ValueError(text)


def payload_from(value: Any) -> WebhookPayload:
    if not isinstance(value, dict):
        raise PayloadError("The payload is not an object.")
    return WebhookPayload(value)


def _typed(value: Any, kind: Any, where: str) -> Any:
    if isinstance(kind, list):
        if not isinstance(value, list):
            raise PayloadError(f"{where} is not a list.")
        return [_typed(item, kind[0], f"{where}[{at}]") for at, item in enumerate(value)]
    if issubclass(kind, PayloadObject):
        if not isinstance(value, dict):
            raise PayloadError(f"{where} is not an object.")
        return kind(value, where)
    # In Python a bool is an int.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise PayloadError(f"{where} is not of type {kind.__name__}.")
    return value


def _wrapped(value: Any) -> Any:
    """Wrap an unknown member, so that its members are accessible in the same way."""
    if isinstance(value, dict):
        return PayloadObject(value)
    if isinstance(value, list):
        return [PayloadObject(item) if isinstance(item, dict) else item for item in value]
    return value
