"""The client library: `Hub` for threads and `AsyncHub` for event loops, on a core without I/O.

Owns requests to a hub, retries, sign-ins and their storage, uploads and downloads. Depends on the server only through
the wire format. `operations` and `files` contain generators that yield effects (`wire`), `session` runs a single call,
and `transport` does all network I/O.
"""

from typing import TYPE_CHECKING

from hubgate.client.errors import (
    BadRequest,
    Conflict,
    ConnectionLost,
    EntryNotFound,
    FileChanged,
    Forbidden,
    GatedRepo,
    Gone,
    HubFailure,
    HubgateError,
    NotFound,
    NotSignedIn,
    RateLimited,
    Refused,
    RepoNotFound,
    RevisionNotFound,
    SignInDenied,
    SignInExpired,
    SignInFailed,
    Stale,
    StoreUnusable,
    TimedOut,
    UnexpectedResponse,
    Unreachable,
    UnsafeRedirect,
    WrongHash,
)
from hubgate.client.hub import Hub

if TYPE_CHECKING:
    from hubgate.client.async_hub import AsyncHub

__all__ = [
    "AsyncHub",
    "BadRequest",
    "Conflict",
    "ConnectionLost",
    "EntryNotFound",
    "FileChanged",
    "Forbidden",
    "GatedRepo",
    "Gone",
    "Hub",
    "HubFailure",
    "HubgateError",
    "NotFound",
    "NotSignedIn",
    "RateLimited",
    "Refused",
    "RepoNotFound",
    "RevisionNotFound",
    "SignInDenied",
    "SignInExpired",
    "SignInFailed",
    "Stale",
    "StoreUnusable",
    "TimedOut",
    "UnexpectedResponse",
    "Unreachable",
    "UnsafeRedirect",
    "WrongHash",
]


def __getattr__(name: str) -> object:
    # asyncio takes longer to import than everything else, and blocking scripts do not need it.
    if name == "AsyncHub":
        from hubgate.client.async_hub import AsyncHub

        return AsyncHub
    raise AttributeError(f"module 'hubgate.client' has no attribute {name!r}")
