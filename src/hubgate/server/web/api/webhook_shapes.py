"""A webhook and its deliveries as JSON. A list is bare, a single webhook is wrapped: existing clients expect both."""

from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.clock import iso, iso_or_none
from hubgate.server.errors import Unprocessable
from hubgate.server.storage.database import Row
from hubgate.server.webhooks.activity.delivery_log import FullDelivery
from hubgate.server.webhooks.activity.store import LoggedDelivery
from hubgate.server.webhooks.management.lifecycle import StoredWebhook, WebhookRequest
from hubgate.server.webhooks.model import ALIVE, ENABLED, SUSPENDED
from hubgate.server.webhooks.options import OPTIONS

_S = TypeVar("_S", bound=msgspec.Struct)


def _with_options(name: str, base: type[_S], fields: list[Any], **config: Any) -> type[_S]:
    """The struct `base` with a field for each option."""
    namespace = {"__doc__": base.__doc__} if base.__doc__ else {}
    struct = msgspec.defstruct(name, fields, bases=(base,), namespace=namespace, rename="camel", **config)
    return cast("type[_S]", struct)


class Watched(msgspec.Struct):
    type: str
    name: str


class _NewWebhook(msgspec.Struct, rename="camel"):
    watched: list[Watched]
    url: str | None = None
    domains: list[str] | None = None
    secret: str | None = None
    pull: bool = False
    job: Any = None
    job_source_id: Any = None


class _WebhookChanges(msgspec.Struct, rename="camel"):
    """Settings that are missing or null stay unchanged, except the secret: null removes it."""

    watched: list[Watched] | UnsetType | None = UNSET
    url: str | UnsetType | None = UNSET
    domains: list[str] | UnsetType | None = UNSET
    secret: str | UnsetType | None = UNSET
    overlap_seconds: int | None = None
    pull: bool = False
    job: Any = None
    job_source_id: Any = None


class _WebhookJson(msgspec.Struct, rename="camel", omit_defaults=True):
    id: str
    watched: list[Watched]
    domains: list[str]
    disabled: bool | str
    status: str
    public_key: str
    created_at: str
    has_secret: bool
    url: str | UnsetType = UNSET
    # Only in the response to the request that set it (attack O74).
    secret: str | UnsetType = UNSET
    pull: bool | UnsetType = UNSET
    last_trigger_at: str | UnsetType = UNSET


_OPTION_FIELDS = [(option.name, option.type | None, None) for option in OPTIONS]
NewWebhook = _with_options("NewWebhook", _NewWebhook, _OPTION_FIELDS)
WebhookChanges = _with_options("WebhookChanges", _WebhookChanges, _OPTION_FIELDS)
WebhookJson = _with_options(
    "WebhookJson", _WebhookJson, [(option.name, option.type) for option in OPTIONS], kw_only=True, omit_defaults=True
)


WebhookList = list[WebhookJson]  # type: ignore[valid-type]


class OneWebhook(msgspec.Struct):
    webhook: WebhookJson  # type: ignore[valid-type]


class DeliveryResult(msgspec.Struct):
    """The result of a test or a replay. `status` is null if the receiver has not responded yet."""

    status: int | None
    id: str


def parse_settings(given: _NewWebhook | _WebhookChanges) -> WebhookRequest:
    if given.job is not None or given.job_source_id is not None:
        raise Unprocessable("job: this hub does not run jobs. Send a url.")
    return WebhookRequest(
        url=None if isinstance(given.url, UnsetType) else given.url,
        pull=given.pull,
        watched=[(watch.type, watch.name) for watch in given.watched] if given.watched else None,
        domains=None if isinstance(given.domains, UnsetType) else given.domains,
        secret=_secret(given) if isinstance(given, _WebhookChanges) else given.secret,
        overlap_seconds=given.overlap_seconds if isinstance(given, _WebhookChanges) else None,
        options={name: value for name, _, _ in _OPTION_FIELDS if (value := getattr(given, name)) is not None},
    )


def _secret(given: _WebhookChanges) -> str | None:
    """Return the new secret, "" to remove it, None to leave it unchanged. huggingface_hub before 1.0 always sends all
    four fields, null for those that its caller did not set: a change of the url must not remove the secret, because
    then anyone could send to the receiver.
    """
    if isinstance(given.secret, UnsetType):
        return None
    if given.secret is None and UNSET not in (given.watched, given.url, given.domains):
        return None
    return given.secret or ""


def webhook_json(stored: StoredWebhook, secret: str | UnsetType = UNSET) -> _WebhookJson:
    """Describe a webhook. `secret` is given only for the response to the request that set it."""
    webhook = stored.webhook
    return WebhookJson(
        id=webhook.id,
        watched=[Watched(watch.type, watch.name) for watch in stored.watched],
        domains=webhook.domains.split(),
        disabled="suspended-after-failure" if webhook.state == SUSPENDED else webhook.state != ENABLED,
        status=ENABLED if webhook.state == ENABLED else "disabled",
        public_key=webhook.public_key,
        created_at=iso(webhook.created_at),
        has_secret=webhook.secret is not None,
        url=UNSET if webhook.url is None else webhook.url,
        pull=True if webhook.url is None else UNSET,
        secret=secret,
        last_trigger_at=UNSET if webhook.last_trigger_at is None else iso(webhook.last_trigger_at),
        **cast("dict[str, Any]", webhook.options),
    )


def delivery_json(logged: LoggedDelivery) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": logged.id,
        "event": {"id": logged.event_id, "action": logged.action, "scope": logged.scope},
        "repo": {"type": logged.repo_type, "name": logged.repo_name},
        "state": logged.state,
        "status": logged.status,
        "attempts": logged.attempts,
        "at": iso(logged.created_at),
        "nextAttemptAt": iso_or_none(logged.due_at if logged.state in ALIVE else None),
        "replayOf": logged.origin,
    }
    if logged.reason:
        fields["reason"] = logged.reason
    return fields


def full_delivery_json(full: FullDelivery) -> dict[str, Any]:
    return {
        **delivery_json(full.logged),
        "payload": None if full.payload is None else msgspec.Raw(full.payload),
        "request": {"url": full.request.url, "headers": full.request.headers},
        "tries": [_attempt_json(row) for row in full.attempts],
    }


def _attempt_json(row: Row) -> dict[str, Any]:
    return {
        "at": iso(row["at"]),
        "status": row["status"],
        "durationMs": row["duration_ms"],
        "error": row["error"] or None,
        "response": bytes(row["response"]).decode("utf-8", "replace"),
    }
