"""O34: nothing may frame the consent page, the sign-in page or what they answer."""

from tests.bed.apps import approve, make_app
from tests.bed.people import browser_of, make_user
from tests.bed.running import RunningHub


def test_o34_no_page_on_the_way_can_be_framed(hub: RunningHub) -> None:
    client = make_app(hub)
    with browser_of(hub, make_user(hub, "ada")) as browser, hub.client() as visitor:
        pages = {
            "consent": browser.get(client.address()),
            "sign-in": visitor.get(visitor.get(client.address()).headers["location"]),
            "sign-in again": browser.get(browser.get(client.address(prompt="login")).headers["location"]),
            "stopped": browser.get(client.address(redirect_uri="https://evil.example/")),
            "form post": approve(browser, client.address(response_mode="form_post")),
            "refused": browser.post(client.address(prompt="consent")),
            "connected apps": browser.get("/settings/connected"),
            "connected app": browser.get(f"/settings/connected/{client.id}"),
            "revoke": browser.get(f"/settings/connected/{client.id}/revoke"),
        }
    assert [page.status_code for page in pages.values()] == [200, 200, 200, 400, 200, 403, 200, 200, 200]
    for name, page in pages.items():
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"], name
        assert page.headers["x-frame-options"] == "DENY", name
