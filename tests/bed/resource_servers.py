"""Registered resource servers for tests, and what they ask the hub."""

from dataclasses import dataclass
from typing import Any

import httpx
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import Organization, Owner, User
from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.resource_servers import management
from hubgate.server.oauth.resource_servers.model import ResourceScope, ResourceServer
from hubgate.server.resources import Hub

IDENTIFIER = "https://mcp.example/mcp"
TOOLS, ADMIN = ResourceScope("mcp:tools", "Use your tools"), ResourceScope("mcp:admin", "Change your tools")


@dataclass(frozen=True)
class Api:
    """A resource server with its secret."""

    hub: RunningHub
    server: ResourceServer
    secret: str

    @property
    def identifier(self) -> str:
        return self.server.identifier

    def ask(self, token: str, **more: Any) -> httpx.Response:
        with self.hub.client(auth=(self.server.id, self.secret)) as http:
            return http.post("/oauth/introspect", data={"token": token}, **more)

    def introspect(self, token: str) -> dict[str, Any]:
        answer = self.ask(token)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def accepts(self, token: str) -> bool:
        return bool(self.introspect(token)["active"])


def register(
    hub: RunningHub,
    owner: User | Organization,
    identifier: str = IDENTIFIER,
    scopes: tuple[ResourceScope, ...] = (TOOLS, ADMIN),
    tokens: str = "opaque",
    name: str = "Toolbox",
) -> Api:
    """Register a resource server as the operator does: without proof."""
    whose = Owner(user_id=owner.id) if isinstance(owner, User) else Owner(org_id=owner.id)
    draft = ResourceServer("", identifier, name, scopes, tokens)

    async def work(opened: Hub) -> tuple[ResourceServer, str]:
        return await management.create_vouched(opened.oauth, whose, draft, SYSTEM)

    return Api(hub, *hub.call(work))
