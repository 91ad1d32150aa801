"""The landing page: its content, and who sees recent deliveries."""

from collections.abc import Iterator

import httpx
import pytest
from tests.bed.receiver_library import SECRET, post, serve_receiver

from hubgate.receiver import WebhookPayload, WebhooksServer
from hubgate.receiver.landing import is_local
from hubgate.receiver.log import RejectionLog
from hubgate.receiver.recent import MAX_ACCEPTED, MAX_REJECTED
from hubgate.receiver.testing import Deliverer, new_key, signed_delivery


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    app = WebhooksServer(webhook_secret=SECRET)

    @app.add_webhook
    def train(payload: WebhookPayload) -> None:
        """Trains anew <quickly>."""

    app.on("repo.content", type="dataset")(lambda: None)
    with serve_receiver(app) as client:
        yield client


def test_page_shows_addresses_and_how_to_test(client: httpx.Client) -> None:
    page = client.get("/")
    base = str(client.base_url).rstrip("/")
    for expected in (
        f"{base}/webhooks/train",
        f"{base}/webhooks/events",
        "Trains anew &lt;quickly&gt;.",
        "repo.content",
        f"printenv WEBHOOK_SECRET | hubgate webhooks create --url {base}/webhooks/train",
        "--watch user:NAME --secret-stdin",
        "hubgate webhooks test",
        "X-Webhook-Secret: $WEBHOOK_SECRET",
        "Authenticated",
    ):
        assert expected in page.text, expected
    assert SECRET not in page.text
    assert client.head("/").status_code == 200


def test_page_has_no_external_or_inline_resources(client: httpx.Client) -> None:
    page = client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    for forbidden in ("<script", "<style", " style=", "onload", "https://", "@import", "url("):
        assert forbidden not in page.text + client.get("/landing.css").text, forbidden


def test_page_lists_recent_deliveries(client: httpx.Client) -> None:
    post(client, "/webhooks/train", signed_delivery("repo.content.update", name="ada/tiny", secret=SECRET, id="the-id"))
    post(client, "/webhooks/train", signed_delivery("repo.create", secret="wrong"))
    page = client.get("/").text
    for expected in ("repo.content update", "ada/tiny", "the-id", "✓ Done", "✕ Rejected", "403", "UTC</time>"):
        assert expected in page, expected


def test_names_are_escaped(client: httpx.Client) -> None:
    name = "ada/<b>\u202e\x07" + "x" * 500
    post(client, "/webhooks/train", signed_delivery("repo.create", name=name, secret=SECRET, id="<i>"))
    page = client.get("/").text
    assert "<bdi>ada/&lt;b&gt;xxx" in page
    assert "&lt;i&gt;" in page
    assert "\u202e" not in page
    assert "x" * 100 not in page


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == "hubgate.receiver"]


def test_names_cannot_forge_log_lines(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "hubgate.receiver"):
        post(client, "/webhooks/train", signed_delivery("repo.create", name="ada/x\nWARNING forged", secret=SECRET))
    (line,) = lines(caplog)
    assert line == "/webhooks/train repo create ada/xWARNING forged: done, 200"


def test_log_says_why_a_delivery_was_rejected(caplog: pytest.LogCaptureFixture) -> None:
    app = WebhooksServer(webhook_secret=SECRET)
    app.add_webhook("train")(lambda: None)
    with Deliverer(app) as deliver:
        assert deliver("repo.create", secret="wrong").status == 403
    assert lines(caplog) == [
        "Rejected a delivery to /webhooks/train with 403: X-Webhook-Secret does not match the configured secret."
    ]


def test_rejected_deliveries_do_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    rejections = RejectionLog()
    for now in (50.0, 50.1, 50.9, 51.1):
        rejections.add("/webhooks/train", 401, "X-Webhook-Secret is missing.\n", now)
    line = "Rejected a delivery to /webhooks/train with 401: X-Webhook-Secret is missing."
    assert lines(caplog) == [line, f"{line} (2 more since the previous line)"]


def test_lone_surrogate_does_not_break_the_page(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    """And as none in the log, which may go to where only whole characters can."""
    with caplog.at_level("INFO", "hubgate.receiver"):
        post(client, "/webhooks/train", signed_delivery("repo.create", name="ada/\ud800", secret=SECRET))
    assert client.get("/").status_code == 200
    (line,) = lines(caplog)
    assert line.encode() == b"/webhooks/train repo create ada/: done, 200"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:7860"},
        {"Host": "127.0.0.1.evil.example"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"Via": "1.1 proxy"},
        {"X-Real-IP": "127.0.0.1"},
    ],
)
def test_remote_visitors_do_not_see_deliveries(client: httpx.Client, headers: dict[str, str]) -> None:
    """Visitors of a proxy on this machine, and sites whose name somebody pointed at it."""
    post(client, "/webhooks/train", signed_delivery("repo.create", name="ada/private", secret=SECRET))
    assert "ada/private" in client.get("/").text
    page = client.get("/", headers=headers).text
    assert "ada/private" not in page
    assert "own machine" in page


@pytest.mark.parametrize(
    ("address", "host", "local"),
    [
        ("127.0.0.1", b"127.0.0.1:7860", True),
        ("127.9.9.9", b"localhost", True),
        ("::1", b"[::1]:7860", True),
        ("::ffff:127.0.0.1", b"LOCALHOST:1", True),
        ("10.0.0.1", b"localhost", False),
        ("::1", b"[2001:db8::1]", False),
        ("", b"localhost", False),
        (None, b"localhost", False),
    ],
)
def test_only_direct_loopback_visitors_are_local(address: str | None, host: bytes, local: bool) -> None:
    client = None if address is None else (address, 1)
    assert is_local({"client": client, "headers": [(b"host", host)]}) is local
    assert not is_local({"client": client, "headers": [(b"host", host), (b"host", host)]})
    # As nginx asks with nothing but `proxy_pass` configured.
    assert not is_local({"client": client, "headers": [(b"host", host)], "http_version": "1.0"})


def test_rejected_deliveries_do_not_displace_accepted_ones(client: httpx.Client) -> None:
    post(client, "/webhooks/train", signed_delivery("repo.create", name="ada/kept", secret=SECRET))
    for _ in range(MAX_ACCEPTED + 5):
        client.post("/webhooks/train")
    page = client.get("/").text
    assert "ada/kept" in page
    assert page.count("✕ Rejected") == MAX_REJECTED


def test_page_without_a_secret_and_without_webhooks() -> None:
    with serve_receiver(WebhooksServer()) as client:
        page = client.get("/").text
        assert "Open to everybody" in page
        assert "No webhook is registered" in page
        assert "No deliveries yet" in page


@pytest.mark.parametrize(("keys", "by_hand"), [({}, True), ({"public_key": new_key().public}, False)])
def test_instructions_omit_the_secret_if_none_is_configured(keys: dict[str, str], by_hand: bool) -> None:
    app = WebhooksServer(**keys)  # type: ignore[arg-type]
    app.add_webhook("x")(lambda: None)
    with Deliverer(app) as deliver:
        page = deliver.get("/").body.decode()
    assert "/webhooks/x --watch user:NAME<" in page
    assert ("curl" in page) is by_hand
    assert "X-Webhook-Secret" not in page
