"""The request of a delivery: headers, signatures and body. Parts that all requests of a webhook share are cached."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from hubgate import __version__
from hubgate.server.clock import SECOND
from hubgate.server.egress.client import request_head
from hubgate.server.egress.hosted_links import HostedLink
from hubgate.server.egress.target import Target, parse_target
from hubgate.server.egress.tunnel_links import NO_LINKS, TunnelLink, TunnelLinks
from hubgate.server.secret import ServerSecret
from hubgate.server.webhooks import signing
from hubgate.server.webhooks.delivering.webhook_queue import Item
from hubgate.server.webhooks.health import Health
from hubgate.server.webhooks.sealed_secrets import opened_key, opened_secret

VERSION = 3
USER_AGENT = f"hubgate-webhook/{__version__}"
SIGNATURE = "webhook-signature"
SECRET = "X-Webhook-Secret"  # noqa: S105 (the name of the header)


class WebhookSettings(Struct, frozen=True):
    """The columns of a webhook that sending needs."""

    state: str
    version: int
    ordered: int
    url: str | None
    secret: bytes | None
    old_secret: bytes | None
    old_secret_until: int | None
    private_key: bytes
    resets: int
    failures: int
    closed_until: int
    failing_since: int | None
    warned_at: int | None
    failed_at: int | None

    @property
    def health(self) -> Health:
        return Health(self.failures, self.closed_until, self.failing_since, self.warned_at, self.failed_at)


SETTINGS = tuple(field.name for field in fields(WebhookSettings))


class Prepared(Struct, frozen=True):
    """The parts that all requests of a webhook share, for one version of its settings. Requests begin with `head`."""

    webhook_id: str
    version: int
    url: str
    # For the limit of requests in flight to one host.
    host: str
    # None if the URL or the secret cannot be used: every attempt fails.
    target: Target | None
    head: bytes
    # The end of every body.
    suffix: bytes
    sign: signing.Sign
    sign_old: signing.Sign | None
    old_until: int
    secret: str
    # Set if the URL is a temporary link or a Space of this hub, which is not dialled.
    link: TunnelLink | HostedLink | None = None


def prepare(
    secret: ServerSecret, webhook_id: str, settings: WebhookSettings, links: TunnelLinks = NO_LINKS
) -> Prepared:
    """Prepare requests of a webhook, whose settings are as the last check found them."""
    headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT, "X-Hubgate-Webhook": webhook_id}
    sign, sign_old, text = signers(secret, webhook_id, settings.secret, settings.old_secret, settings.private_key)
    if text:
        headers[SECRET] = text
    target = parse_target(settings.url or "")
    link = links.find(target)
    return Prepared(
        webhook_id,
        settings.version,
        settings.url or "",
        link.receiver if link else target.host,
        target,
        request_head("POST", target, headers),
        _suffix(webhook_id),
        sign,
        sign_old,
        settings.old_secret_until or 0,
        text,
        link,
    )


def signers(
    secret: ServerSecret, webhook_id: str, current: bytes | None, old: bytes | None, private_key: bytes
) -> tuple[signing.Sign, signing.Sign | None, str]:
    """The functions that sign with the current and with the old secret of a webhook, and the current secret. Without a
    secret, the webhook's private key signs.
    """
    if current is None:
        return signing.ed25519_signer(opened_key(secret, webhook_id, private_key)), None, ""
    text = opened_secret(secret, webhook_id, current)
    sign_old = None if old is None else signing.hmac_signer(opened_secret(secret, webhook_id, old))
    return signing.hmac_signer(text), sign_old, text


def unusable(webhook_id: str, settings: WebhookSettings) -> Prepared:
    return Prepared(webhook_id, settings.version, settings.url or "", "", None, b"", b"", lambda _: "", None, 0, "")


class Outgoing(Struct, frozen=True):
    data: bytes
    url: str
    signature: str


def outgoing(prepared: Prepared, item: Item, now: int) -> Outgoing:
    """The request of one attempt. The body is the same in every attempt and replay."""
    body = item.body[:-1] + prepared.suffix
    timestamp = now // SECOND
    content = signing.signed_content(item.id, timestamp, body)
    signature = prepared.sign(content)
    if prepared.sign_old is not None and prepared.old_until > now:
        signature = f"{signature} {prepared.sign_old(content)}"
    headers = _own_headers(item.id, item.attempts + 1, item.repo_seq, item.depth, item.is_test, timestamp)
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    tail = f"{lines}{SIGNATURE}: {signature}\r\nContent-Length: {len(body)}\r\n\r\n"
    return Outgoing(b"".join((prepared.head, tail.encode("ascii"), body)), prepared.url, signature)


def _own_headers(
    delivery_id: str, attempt: int, repo_seq: int, depth: int, is_test: bool, timestamp: int
) -> dict[str, str]:
    """The headers that differ between attempts, without the signature."""
    headers = {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(timestamp),
        "X-Hubgate-Attempt": str(attempt),
        "X-Hubgate-Sequence": str(repo_seq),
        "X-Hubgate-Depth": str(depth),
    }
    if is_test:
        headers["X-Hubgate-Test"] = "1"
    return headers


def plain_headers(delivery_id: str, webhook_id: str, attempt: int, about: Mapping[str, Any], at: int) -> dict[str, str]:
    """All headers except the secret and the signature. `about` has repo_seq, depth and is_test."""
    return {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "X-Hubgate-Webhook": webhook_id,
        **_own_headers(delivery_id, attempt, about["repo_seq"], about["depth"], bool(about["is_test"]), at // SECOND),
    }


def with_webhook(event_body: bytes, webhook_id: str) -> bytes:
    """The body of an event with the part that names the webhook."""
    return event_body[:-1] + _suffix(webhook_id)


def _suffix(webhook_id: str) -> bytes:
    return f',"webhook":{{"id":"{webhook_id}","version":{VERSION}}}}}'.encode()
