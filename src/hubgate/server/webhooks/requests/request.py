"""The request of a delivery: headers, signatures and body. Parts that all requests of a webhook share are cached."""

import html
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from hubgate import __version__
from hubgate.server.clock import SECOND
from hubgate.server.egress.client import request_head
from hubgate.server.egress.target import Target, parse_target
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Row
from hubgate.server.webhooks import signing
from hubgate.server.webhooks.delivering.webhook_queue import Item
from hubgate.server.webhooks.sealed_secrets import opened_key, opened_secret

VERSION = 3
USER_AGENT = f"hubgate-webhook/{__version__}"
SIGNATURE = "webhook-signature"
SECRET = "X-Webhook-Secret"  # noqa: S105 (the name of the header)


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
    # How a receiver may repeat the secret in its response (attack W33), the longest first.
    spellings: tuple[bytes, ...]


def prepare(secret: ServerSecret, webhook_id: str, row: Row) -> Prepared:
    """Prepare requests from a row with version, url, secret, old_secret, old_secret_until and private_key."""
    headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT, "X-Hubgate-Webhook": webhook_id}
    sign, sign_old, text = signers(secret, webhook_id, row)
    if text:
        headers[SECRET] = text
    target = parse_target(row["url"])
    return Prepared(
        webhook_id,
        row["version"],
        row["url"],
        target.host,
        target,
        request_head("POST", target, headers),
        _suffix(webhook_id),
        sign,
        sign_old,
        row["old_secret_until"] or 0,
        _spellings(text),
    )


def signers(secret: ServerSecret, webhook_id: str, row: Row) -> tuple[signing.Sign, signing.Sign | None, str]:
    """The functions that sign with the current and with the old secret, and the current secret; without a secret, the
    function that signs with the key of the webhook. `row` has secret, old_secret and private_key.
    """
    if row["secret"] is None:
        return signing.ed25519_signer(opened_key(secret, webhook_id, row["private_key"])), None, ""
    text = opened_secret(secret, webhook_id, row["secret"])
    if row["old_secret"] is None:
        return signing.hmac_signer(text), None, text
    return signing.hmac_signer(text), signing.hmac_signer(opened_secret(secret, webhook_id, row["old_secret"])), text


def unusable(webhook_id: str, row: Row) -> Prepared:
    return Prepared(webhook_id, row["version"], row["url"], "", None, b"", b"", lambda _: "", None, 0, ())


def _spellings(secret: str) -> tuple[bytes, ...]:
    """The secret as it is, and as JSON, HTML and URLs write it."""
    spellings = {secret, json.dumps(secret)[1:-1], html.escape(secret), quote(secret, safe="")} if secret else set()
    return tuple(sorted((spelling.encode() for spelling in spellings), key=len, reverse=True))


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
