"""The client library: a sans-I/O core, `Hub` for threads and `AsyncHub` for event loops.

Owns requests to a hub, retries, sign-ins and their store, files up and down. Knows of the server only what is on the
wire. `operations` and `files` are flows of effects (`wire`), `session` is one call, `transport` the only network.
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
    UnexpectedAnswer,
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
    "UnexpectedAnswer",
    "Unreachable",
    "UnsafeRedirect",
    "WrongHash",
]


def __getattr__(name: str) -> object:
    # asyncio takes longer to import than all the rest, and scripts have no use for it.
    if name == "AsyncHub":
        from hubgate.client.async_hub import AsyncHub

        return AsyncHub
    raise AttributeError(f"module 'hubgate.client' has no attribute {name!r}")
