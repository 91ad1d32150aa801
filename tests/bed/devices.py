"""Steps of the device flow."""

import httpx
from tests.bed.apps import Client
from tests.bed.people import Page, browser_of
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
VERIFY = "/oauth/device/verify"


def start(client: Client, **more: str) -> dict[str, str]:
    response = client.post("/oauth/device", {"client_id": client.id, **more})
    assert response.status_code == 200, response.text
    started: dict[str, str] = response.json()
    return started


def poll(client: Client, device_code: str) -> httpx.Response:
    return client.post("/oauth/token", {"grant_type": GRANT, "device_code": device_code, "client_id": client.id})


def enter(browser: httpx.Client, user_code: str) -> httpx.Response:
    """Submit the user code; the response is the consent page."""
    hidden = Page(browser.get("/oauth/device")).hidden()
    return browser.post(VERIFY, data={**hidden, "user_code": user_code})


def decide(browser: httpx.Client, page: httpx.Response, decision: str, **fields: object) -> httpx.Response:
    """Submit the consent page with a decision and more form fields."""
    return browser.post(VERIFY, data={**Page(page).hidden(), "decision": decision, **fields})


def approve(hub: RunningHub, user: User, user_code: str, scopes: str, **fields: object) -> None:
    with browser_of(hub, user) as browser:
        response = decide(browser, enter(browser, user_code), "approve", scopes=scopes.split(), **fields)
        assert (response.status_code, response.headers["location"]) == (303, "/oauth/device/done"), response.text
