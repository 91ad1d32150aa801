"""The input of a grant, and the signature of a grant function."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from hubgate.server.accounts.model import Visitor
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.client_auth import ClientCredentials
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.parameters import Parameters


@dataclass(frozen=True)
class GrantRequest:
    """A token request. `app` is authenticated; None only for grants that allow requests without a client (registry)."""

    oauth: OAuth
    parameters: Parameters
    app: App | None
    presented: ClientCredentials | None
    visitor: Visitor


Grant = Callable[[GrantRequest], Awaitable[dict[str, Any]]]
