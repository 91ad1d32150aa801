"""Concurrent changes of one webhook's settings: fields that a user did not change stay as another user set them. If
both changed a field, the second user is warned before anything is overwritten.
"""

import hashlib
from dataclasses import replace
from typing import Any

from hubgate.server.errors import FieldErrors
from hubgate.server.web.pages.webhooks.form import Draft
from hubgate.server.webhooks.management.lifecycle import WebhookRequest

FIELD = "seen"
_FIELDS = ("url", "watched", "domains", "ordered")
_MOST_SHOWN = 200


def seen(shown: Draft) -> str:
    """A hidden form value: a short hash of each field as first shown."""
    return " ".join(_hashes(shown).values())


def merged(typed: Draft, now: Draft, seen_before: str) -> Draft:
    """Merge the form into `now`, the stored settings. `seen_before` is the value sent with the form; without it, no
    concurrent change is detected.
    """
    original, typed_hashes = _read(seen_before), _hashes(typed)
    untouched: dict[str, Any] = {
        name: getattr(now, name) for name in _FIELDS if typed_hashes[name] == original.get(name)
    }
    return replace(typed, **untouched)


def changes(asked: WebhookRequest, draft: Draft, now: Draft, seen_before: str) -> WebhookRequest:
    """Return only the fields of the merged draft that differ from the stored ones. Rejects overwriting a concurrent
    change.
    """
    original, wanted_hashes, stored = _read(seen_before), _hashes(draft), _hashes(now)
    touched = [name for name in _FIELDS if wanted_hashes[name] != stored[name]]
    conflicts = [name for name in touched if original.get(name, stored[name]) != stored[name]]
    if conflicts:
        raise FieldErrors({name: _conflict_message(name, now) for name in conflicts})
    # Unchanged names stay bound to their repos: a name that another repo took since then is not watched by accident.
    unset: dict[str, Any] = dict.fromkeys(set(_FIELDS).difference(touched))
    return replace(asked, **unset)


def _read(seen_before: str) -> dict[str, str]:
    return dict(zip(_FIELDS, seen_before.split(" "), strict=False)) if seen_before else {}


def _hashes(draft: Draft) -> dict[str, str]:
    alike = replace(draft, watched=draft.watched.strip(), domains=tuple(sorted(draft.domains)))
    return {name: hashlib.sha256(repr(getattr(alike, name)).encode()).hexdigest()[:16] for name in _FIELDS}


def _conflict_message(name: str, now: Draft) -> str:
    value = {
        "url": now.url or "none",
        "watched": ", ".join(now.watched.split("\n")),
        "domains": " and ".join(now.domains),
        "ordered": "on" if now.ordered else "off",
    }[name]
    shown = value if len(value) <= _MOST_SHOWN else value[:_MOST_SHOWN] + "…"
    return f"Changed meanwhile to {shown}. Save again to have it as it is here."
