"""Chooses the hub and the token: argument, else environment, else stored sign-in, else default."""

import os
from typing import Literal

from hubgate.client.addresses import checked_endpoint
from hubgate.client.credentials import Given, Stored
from hubgate.client.session import RETRIES, Session
from hubgate.client.store import Store

DEFAULT_ENDPOINT = "http://127.0.0.1:8000"


def chosen_endpoint(given: str | None, store: Store) -> str:
    if text := given or os.environ.get("HUBGATE_ENDPOINT"):
        return checked_endpoint(text)
    return store.load().endpoint or DEFAULT_ENDPOINT


def session_for(
    endpoint: str | None, token: str | Literal[False] | None, store: Store, retries: int = RETRIES
) -> Session:
    """The session for a hub. `token=False` means anonymous, even if a sign-in is stored."""
    origin = chosen_endpoint(endpoint, store)
    if token is False:
        return Session(origin, Given(None), retries)
    if given := token or os.environ.get("HUBGATE_TOKEN"):
        return Session(origin, Given(given), retries)
    return Session(origin, Stored(store), retries)
