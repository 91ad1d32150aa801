"""Points the app and the webhooks at the ports of this start, which may differ from those of the last one."""

from hubgate.demo.api import open_api
from hubgate.demo.state import WEBHOOKS, State
from hubgate.demo.tour import Addresses
from hubgate.server.resources import open_hub
from hubgate.server.settings import Settings


async def connect(settings: Settings, state: State, addresses: Addresses) -> None:
    """Update what the user has not deleted. What is right already is not changed: changes are in the audit log."""
    hub = await open_hub(settings)
    try:
        async with open_api(hub) as api:
            for name, webhook_id in state.webhooks.items():
                at, url = WEBHOOKS[name], f"{addresses.receiver}/webhooks/{name}"
                found = {each["id"]: each["url"] for each in await api.call("GET", at, state.tokens["ada"])}
                if found.get(webhook_id, url) != url:
                    await api.call("POST", f"{at}/{webhook_id}", state.tokens["ada"], {"url": url})
            # The port of a loopback redirect URI may be any, so only the link to the app changes.
            for app in await api.call("GET", "/api/settings/applications", state.tokens["lin"]):
                if app["clientId"] == state.app_id and app["homepage"] != addresses.app:
                    at = f"/api/settings/applications/{state.app_id}"
                    await api.call("PATCH", at, state.tokens["lin"], {"homepage": addresses.app})
    finally:
        await hub.close()
