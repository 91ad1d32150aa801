"""Concurrent changes of a webhook's settings. The form carries the version of the settings that it showed, and their
values: settings that the user did not change stay as another user set them. If both changed a setting, the second user
sees the other's value and confirms before anything is overwritten.
"""

import json
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.errors import FieldErrors
from hubgate.server.http.forms import Fields
from hubgate.server.web.pages.webhooks.form import Draft, draft_of
from hubgate.server.webhooks.management.lifecycle import StoredWebhook, WebhookRequest
from hubgate.server.webhooks.options import OPTIONS

_MAX_SHOWN = 200
_FLAGS = frozenset(option.wire for option in OPTIONS if option.is_flag)


class ShownSettings(Struct, frozen=True):
    """The settings that the form showed when the user opened it. `values` is empty if the field is not valid JSON."""

    version: str
    values: dict[str, Any]

    def merge(self, typed: Draft, stored: StoredWebhook) -> Draft:
        """The typed settings, with the stored value of each setting that the user did not change."""
        now, values = _values(draft_of(stored)), _values(typed)
        unchanged = {name: now[name] for name in now if values[name] == self.values.get(name)}
        return _with_values(typed, {**values, **unchanged})

    def changes(self, request: WebhookRequest, draft: Draft, stored: StoredWebhook) -> WebhookRequest:
        """Reduce the request to the settings of the merged draft that differ from the stored ones. Raises FieldErrors
        if another user changed one of these.
        """
        now, values = _values(draft_of(stored)), _values(draft)
        changed = {name for name in now if values[name] != now[name]}
        if self.version != str(stored.webhook.version):
            conflicts = [name for name in now if name in changed and self.values.get(name) != now[name]]
            if conflicts:
                raise FieldErrors({name: _conflict_message(name, now[name]) for name in conflicts})
        return WebhookRequest(
            url=request.url if "url" in changed else None,
            # Unchanged names stay bound to their repos, even if another repo has the name by now.
            watched=request.watched if "watched" in changed else None,
            domains=request.domains if "domains" in changed else None,
            options={option.name: request.options[option.name] for option in OPTIONS if option.wire in changed},
        )


def hidden_fields(stored: StoredWebhook) -> dict[str, str]:
    """The hidden fields of the form."""
    return {"version": str(stored.webhook.version), "original": json.dumps(_values(draft_of(stored)))}


def parse_hidden_fields(form: Fields, stored: StoredWebhook) -> ShownSettings:
    """Read the hidden fields. A form without them is treated as if it showed the current settings."""
    version, original = form.get("version"), form.get("original")
    if not version and not original:
        return ShownSettings(str(stored.webhook.version), {})
    try:
        values = json.loads(original)
    except (ValueError, RecursionError):
        values = None
    return ShownSettings(version, values if isinstance(values, dict) else {})


def _values(draft: Draft) -> dict[str, Any]:
    """The settings by form field, normalized for comparison."""
    values = {"url": draft.url, "watched": draft.watched.strip(), "domains": sorted(draft.domains)}
    return values | {option.wire: draft.options[option.name] for option in OPTIONS}


def _with_values(draft: Draft, values: dict[str, Any]) -> Draft:
    options = {option.name: values[option.wire] for option in OPTIONS}
    domains = tuple(values["domains"])
    return replace(draft, url=values["url"], watched=values["watched"], domains=domains, options=options)


def _conflict_message(name: str, value: str | list[str]) -> str:
    text = " and ".join(value) if isinstance(value, list) else ", ".join(value.split("\n"))
    shown = text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"
    empty = "off" if name in _FLAGS else "none"
    return f"Someone else changed this to {shown or empty}. Save again to overwrite it."
