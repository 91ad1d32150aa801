"""Which hub, and with which token: argument, environment, what was signed in to, the default."""

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
    """`token=False` is anonymous, whatever is stored."""
    where = chosen_endpoint(endpoint, store)
    if token is False:
        return Session(where, Given(None), retries)
    if given := token or os.environ.get("HUBGATE_TOKEN"):
        return Session(where, Given(given), retries)
    return Session(where, Stored(store), retries)
