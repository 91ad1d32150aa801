"""The receiver's landing page in a real Chromium: silent console, nothing for axe-core, phones, both themes."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.bed.receiver_library import SECRET, post, serve_receiver
from tests.browser.axe import objections

from hubgate.receiver import WebhookPayload, WebhooksServer
from hubgate.receiver.testing import KINDS, signed_delivery

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    app = WebhooksServer(webhook_secret=SECRET)

    @app.add_webhook
    def trigger_training(payload: WebhookPayload) -> None:
        """Starts a training when a dataset changes."""
        if payload.event.action == "delete":
            raise RuntimeError("what happened is gone")

    app.on("repo.content", type="dataset")(lambda: None)
    app.on("discussion")(lambda: None)
    with serve_receiver(app) as client:
        for number, kind in enumerate(KINDS):
            name = f"{'long-organization-name' * (number % 3)}ada/{'שלום' if number == 2 else 'tiny'}-{number}"
            post(client, "/webhooks/trigger_training", signed_delivery(kind, name=name, secret=SECRET))
        post(client, "/webhooks/events", signed_delivery("repo.move", secret=SECRET))
        post(client, "/webhooks/events", signed_delivery("repo.move", secret="wrong"))
        yield str(client.base_url)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_follows_the_rules(browser: Any, url: str, theme: str) -> None:
    with browser.new_context(color_scheme=theme, base_url=url) as context:
        page = context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("requestfailed", lambda request: said.append(f"{request.url} failed"))
        page.goto("/")
        for width in (1440, 390, 320):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") == width
            cut = "found => found.filter(one => one.scrollWidth > one.clientWidth).map(one => one.outerHTML)"
            assert page.locator(".card, pre").evaluate_all(cut) == []
            assert objections(page) == []
        # The stylesheet is loaded: nothing in the browser's default white, and the theme is the visitor's.
        canvas = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert canvas == {"light": "rgb(246, 247, 245)", "dark": "rgb(16, 19, 17)"}[theme]
        assert page.get_by_text("trigger_training").first.is_visible()
        assert said == []
