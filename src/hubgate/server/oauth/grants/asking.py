"""The input of a grant, and the signature of a grant function."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from hubgate.server.accounts.model import Visitor
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.client_auth import Presented
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.parameters import Parameters


@dataclass(frozen=True)
class Asking:
    """A token request. `app` is authenticated; None only for grants that allow requests without a client (registry)."""

    oauth: OAuth
    parameters: Parameters
    app: App | None
    presented: Presented | None
    visitor: Visitor


Grant = Callable[[Asking], Awaitable[dict[str, Any]]]
