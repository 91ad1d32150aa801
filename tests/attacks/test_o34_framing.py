"""O34: the sign-in, consent and device pages and their answers cannot be framed."""

import httpx
import pytest
from tests.bed import devices
from tests.bed.apps import approve, create_app
from tests.bed.people import browser_of, create_user
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine


def test_o34_no_page_of_the_code_flow_can_be_framed(hub: RunningHub) -> None:
    client = create_app(hub)
    with browser_of(hub, create_user(hub, "ada")) as browser, hub.client() as visitor:
        pages = {
            "consent": browser.get(client.address()),
            "sign-in": visitor.get(visitor.get(client.address()).headers["location"]),
            "sign-in again": browser.get(browser.get(client.address(prompt="login")).headers["location"]),
            "stopped": browser.get(client.address(redirect_uri="https://evil.example/")),
            "form post": approve(browser, client.address(response_mode="form_post")),
            "consent after a POST": browser.post(client.address(prompt="consent")),
            "refused": browser.post(client.address(prompt="consent"), data={"decision": "approve"}),
            "connected apps": browser.get("/settings/connected"),
            "connected app": browser.get(f"/settings/connected/{client.id}"),
            "revoke": browser.get(f"/settings/connected/{client.id}/revoke"),
        }
    assert [page.status_code for page in pages.values()] == [200, 200, 200, 400, 200, 200, 403, 200, 200, 200]
    assert_unframed(pages)


def test_o34_no_page_of_the_device_flow_can_be_framed(hub: RunningHub) -> None:
    code = devices.start(create_app(hub))["user_code"]
    with browser_of(hub, create_user(hub, "ada")) as browser, hub.client() as visitor:
        asked = devices.enter(browser, code)
        pages = {
            "sent to sign in": visitor.get(f"/oauth/device?user_code={code}"),
            "sign-in": visitor.get(visitor.get(f"/oauth/device?user_code={code}").headers["location"]),
            "code": browser.get("/oauth/device"),
            "code filled in": browser.get(f"/oauth/device?user_code={code}"),
            "wrong code": devices.enter(browser, "BBBB-BBBB"),
            "confirm": asked,
            "neither": devices.decide(browser, asked, "perhaps"),
            "refused": browser.post(devices.VERIFY, data={"user_code": code, "decision": "approve"}),
            "decided": devices.decide(browser, asked, "deny"),
            "done": browser.get("/oauth/device/done"),
        }
    assert [page.status_code for page in pages.values()] == [303, 200, 200, 200, 404, 200, 422, 403, 303, 200]
    assert_unframed(pages)
    for name, page in pages.items():
        assert page.headers["referrer-policy"] == "no-referrer", f"{name}: the address may hold the code"
        assert page.headers["cache-control"] == "no-store", name


def assert_unframed(pages: dict[str, httpx.Response]) -> None:
    for name, page in pages.items():
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"], name
        assert page.headers["x-frame-options"] == "DENY", name
