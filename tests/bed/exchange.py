"""Token exchange by an organization's app."""

from typing import Any

import httpx
from tests.bed.apps import Client, create_app
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import Organization
from hubgate.server.accounts.organizations import settings
from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.apps import privileges
from hubgate.server.resources import Hub

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
USER_EMAIL = "urn:service:token-type:user-email"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


def create_exchange_app(hub: RunningHub, organization: Organization, **given: object) -> Client:
    """Create an app that may exchange tokens: with the Enterprise plan and the operator's permission."""
    client = create_app(hub, None, organization, **given)

    async def work(opened: Hub) -> None:
        await settings.set_plan(opened.accounts, organization, "enterprise", SYSTEM)
        await privileges.set_exchange(opened.oauth, client.id, True, SYSTEM)

    hub.call(work)
    return client


def send_exchange(client: Client, email: str, **more: str) -> httpx.Response:
    form = {"grant_type": GRANT, "subject_token": email, "subject_token_type": USER_EMAIL, **more}
    return client.post("/oauth/token", form)


def exchange_token(client: Client, email: str, **more: str) -> dict[str, Any]:
    response = send_exchange(client, email, **more)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body
