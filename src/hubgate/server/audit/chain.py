"""The format of the hash chain. Pure, and documented in docs/audit.md so that anyone can verify an export.

An entry is sealed as the canonical JSON (RFC 8785) of its API representation, without derived fields that may change:
the author's avatar, and whether author and token still exist. A batch is a text, and its hash is the SHA-256 of that
text:

    hubgate audit batch 1
    organization {id}
    batch {number, from 1}
    sealed {time}
    entries {count}
    previous {hash of the previous batch, in hex; 64 zeros for the first}
    {SHA-256 of the first entry, in hex}
    ...

The text contains the organization, the batch number and the position of each entry, so that moved or swapped entries
are detected. A change of the format must change the first line too: existing batches must verify forever.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hubgate.server.audit.model import Batch, Entry, Head
from hubgate.server.clock import SECOND, iso

FIRST_PREVIOUS_HASH = bytes(32)
"""The previous hash of the first batch."""

SYSTEM_ID = "0" * 24
"""The author id of entries without a user: the wire format requires an id."""

# JavaScript cannot represent larger integers exactly (RFC 8785, section 3.2.2.3).
LARGEST_INTEGER = 2**53 - 1


def exact_time(moment: int) -> str:
    """A time with microseconds, as stored: a lower precision would leave some changes undetected."""
    return f"{iso(moment)[:19]}.{moment % SECOND:06d}Z"


def canonical_json(value: Any) -> str:
    """Canonical JSON (RFC 8785), for values that `check_serializable` accepts."""
    return _CANONICAL.encode(value).decode()


def _as_plain(value: Any) -> str:
    """A subclass of str as str, which is all that the encoder accepts."""
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"{type(value).__name__} cannot be written to the audit log")


_CANONICAL = msgspec.json.Encoder(order="sorted", enc_hook=_as_plain)


def check_serializable(value: Any) -> None:
    """Raise TypeError for values that JSON libraries serialize differently: fractions, huge numbers, non-ASCII keys."""
    # `dict` comes first because a check for an abstract type takes long.
    if isinstance(value, (dict, Mapping)):
        for key, part in value.items():
            if not isinstance(key, str) or not key.isascii():
                raise TypeError(f"{key!r} cannot be a key in the audit log")
            if not isinstance(part, str):
                check_serializable(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            check_serializable(part)
    elif isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise TypeError(f"{value} is too large for the audit log")
    elif value is not None and not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} cannot be written to the audit log")


def entry_text(entry: Entry) -> str:
    """The canonical JSON of an entry; ValueError if a stored JSON text is invalid."""
    fields: dict[str, Any] = {
        "_id": entry.id,
        "author": {
            "_id": entry.author_id or SYSTEM_ID,
            "type": author_type(entry),
            "user": entry.author_name,
        },
        "createdAt": exact_time(entry.created_at),
        "message": entry.message,
        "type": entry.type,
    }
    optional = {
        "data": _parsed(entry.data),
        "ip": entry.ip,
        "oauth": _parsed(entry.oauth),
        "token": _parsed(entry.token),
        "userAgent": entry.user_agent,
    }
    fields |= {name: value for name, value in optional.items() if value is not None}
    return canonical_json(fields)


def author_type(entry: Entry) -> str:
    return "user" if entry.author_id else "system"


def batch_text(org_id: str, seq: int, sealed_at: int, previous: bytes, entries: Sequence[Entry]) -> str:
    lines = [
        "hubgate audit batch 1",
        f"organization {org_id}",
        f"batch {seq}",
        f"sealed {exact_time(sealed_at)}",
        f"entries {len(entries)}",
        f"previous {previous.hex()}",
        *(hashlib.sha256(entry_text(entry).encode()).hexdigest() for entry in entries),
    ]
    return "".join(f"{line}\n" for line in lines)


def sealed_batch(org_id: str, seq: int, sealed_at: int, previous: bytes, entries: Sequence[Entry]) -> Batch:
    text = batch_text(org_id, seq, sealed_at, previous, entries)
    return Batch(org_id, seq, len(entries), hashlib.sha256(text.encode()).digest(), sealed_at)


def find_flaw(batch: Batch, previous: bytes, entries: Sequence[Entry]) -> str | None:
    """The flaw in the stored entries of a batch, given in order; None if they match the sealed hash."""
    if len(entries) > batch.entries:
        return f"contains {len(entries):,} entries, but was sealed with {batch.entries:,}"
    missing = set(range(1, batch.entries + 1)) - {entry.position for entry in entries}
    if len(missing) == 1:
        return f"lacks entry {missing.pop()} of {batch.entries:,}"
    if missing:
        return f"lacks {len(missing):,} of {batch.entries:,} entries"
    if _recompute_hash(batch, previous, entries) != batch.hash:
        return "was changed: an entry, the order of entries, or the batch itself"
    return None


def _recompute_hash(batch: Batch, previous: bytes, entries: Sequence[Entry]) -> bytes | None:
    try:
        return sealed_batch(batch.org_id, batch.seq, batch.sealed_at, previous, entries).hash
    except (ValueError, TypeError, RecursionError, OverflowError, OSError):
        # Invalid JSON or an invalid time; SQLite accepts any value in any column.
        return None


def head_text(head: Head) -> str:
    """The text of a head that the server secret authenticates."""
    return "\n".join(
        [
            "hubgate audit head 1",
            head.org_id,
            str(head.seq),
            head.hash.hex(),
            str(head.dropped),
            str(head.broken or 0),
        ]
    )


def _parsed(text: str | None) -> Any:
    return None if text is None else json.loads(text)
