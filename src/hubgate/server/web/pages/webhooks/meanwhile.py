"""Two who change one webhook's settings at the same time: what each did not touch is left as the other set it, and of
what both did the second is told before anything is lost.
"""

import hashlib
from dataclasses import replace
from typing import Any

from hubgate.server.errors import FieldErrors
from hubgate.server.web.pages.webhooks.form import Draft
from hubgate.server.webhooks.managing.managing import Wanted

FIELD = "seen"
_FIELDS = ("url", "watched", "domains", "ordered")
_MOST_SHOWN = 200


def seen(shown: Draft) -> str:
    """For the form: what it was made from, a short mark for each field."""
    return " ".join(_marks(shown).values())


def merged(typed: Draft, now: Draft, seen_before: str) -> Draft:
    """`now` is what is kept, `seen_before` what came with the form; without it nobody else is known of."""
    at_first, wish = _read(seen_before), _marks(typed)
    untouched: dict[str, Any] = {name: getattr(now, name) for name in _FIELDS if wish[name] == at_first.get(name)}
    return replace(typed, **untouched)


def changes(asked: Wanted, draft: Draft, now: Draft, seen_before: str) -> Wanted:
    """Only what is to become another; of the merged draft. Refuses what would be lost."""
    at_first, wish, kept = _read(seen_before), _marks(draft), _marks(now)
    touched = [name for name in _FIELDS if wish[name] != kept[name]]
    lost = [name for name in touched if at_first.get(name, kept[name]) != kept[name]]
    if lost:
        raise FieldErrors({name: _told(name, now) for name in lost})
    # Untouched, each name stays bound to what it was: one that was taken anew is not watched by accident.
    nothing: dict[str, Any] = dict.fromkeys(set(_FIELDS).difference(touched))
    return replace(asked, **nothing)


def _read(seen_before: str) -> dict[str, str]:
    return dict(zip(_FIELDS, seen_before.split(" "), strict=False)) if seen_before else {}


def _marks(draft: Draft) -> dict[str, str]:
    alike = replace(draft, watched=draft.watched.strip(), domains=tuple(sorted(draft.domains)))
    return {name: hashlib.sha256(repr(getattr(alike, name)).encode()).hexdigest()[:16] for name in _FIELDS}


def _told(name: str, now: Draft) -> str:
    value = {
        "url": now.url or "none",
        "watched": ", ".join(now.watched.split("\n")),
        "domains": " and ".join(now.domains),
        "ordered": "on" if now.ordered else "off",
    }[name]
    shown = value if len(value) <= _MOST_SHOWN else value[:_MOST_SHOWN] + "…"
    return f"Changed meanwhile to {shown}. Save again to have it as it is here."
