"""The resource servers of the stage: Ada has not proved that hers is hers yet, acme has."""

from tests.browser.cast_apps import ATLAS, authorize

from hubgate.server.accounts.model import Organization, User
from hubgate.server.oauth.resource_servers import store
from hubgate.server.oauth.resource_servers.model import ResourceScope, ResourceServer
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx

IDENTIFIER = "https://mcp.a-rather-long-name-of-a-host.example/mcp"
AT = "/settings/resources/65f0c0ffee0000000000abcd"
CONSENT = authorize(ATLAS, "https://atlas.example/callback", "openid profile mcp:tools mcp:admin", resource=IDENTIFIER)
_SCOPES = (
    ResourceScope("mcp:tools", "Use the tools that you have added to your workbench, and see their results"),
    ResourceScope("mcp:admin", "Add tools and remove them"),
)


async def add_resources(hub: Hub, ada: User, acme: Organization) -> None:
    now = hub.clock()
    own = ResourceServer(
        AT.rpartition("/")[2],
        "https://tools.example/mcp",
        "Ada's tools",
        _SCOPES[:1],
        owner_id=ada.id,
        challenge="Xb1kNRr7zqYp0hH1dVb0mQ3cWv5tSg2a",
        created_at=now,
    )
    acmes = ResourceServer(
        "65f0c0ffee0000000000abce",
        IDENTIFIER,
        "Workbench of the research group",
        _SCOPES,
        "jwt",
        org_id=acme.id,
        verified_at=now,
        created_at=now,
    )

    async def unit(tx: Tx) -> None:
        for server in (own, acmes):
            assert await store.add(tx, server)

    await hub.db.write(unit)
