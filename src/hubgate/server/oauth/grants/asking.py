"""What a grant is given, and what it gives back."""

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
    """`app` is proven; it is None only for a grant that takes requests without any client (see the registry)."""

    oauth: OAuth
    parameters: Parameters
    app: App | None
    presented: Presented | None
    visitor: Visitor


Grant = Callable[[Asking], Awaitable[dict[str, Any]]]
