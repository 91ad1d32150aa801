"""The request that goes out: body, headers, signatures. Pure but for opening what is sealed."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from hubgate import __version__
from hubgate.server.clock import SECOND
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Row
from hubgate.server.webhooks import signing
from hubgate.server.webhooks.sealed_secrets import opened_key, opened_secret

VERSION = 3
USER_AGENT = f"hubgate-webhook/{__version__}"
SIGNATURE = "webhook-signature"
SECRET = "X-Webhook-Secret"  # noqa: S105 (the name of the header)


class Outgoing(Struct, frozen=True):
    url: str
    headers: dict[str, str]
    body: bytes

    @property
    def secret(self) -> str:
        return self.headers.get(SECRET, "")

    @property
    def signature(self) -> str:
        return self.headers[SIGNATURE]


def outgoing(secret: ServerSecret, delivery_id: str, row: Row, now: int) -> Outgoing:
    """`row` is of `leases/store.ready`. The body is the same on every try and every replay; the time is this try's."""
    webhook_id: str = row["webhook_id"]
    body = with_webhook(row["body"], webhook_id)
    timestamp = now // SECOND
    headers = plain_headers(delivery_id, webhook_id, row["attempts"] + 1, row, now)
    content = signing.signed_content(delivery_id, timestamp, body)
    if row["secret"] is not None:
        text = opened_secret(secret, webhook_id, row["secret"])
        headers[SECRET] = text
        signatures = [signing.hmac_signature(text, content)]
        if row["old_secret"] is not None and (row["old_secret_until"] or 0) > now:
            old = opened_secret(secret, webhook_id, row["old_secret"])
            signatures.append(signing.hmac_signature(old, content))
        headers[SIGNATURE] = " ".join(signatures)
    else:
        headers[SIGNATURE] = signing.ed25519_signature(opened_key(secret, webhook_id, row["private_key"]), content)
    return Outgoing(row["url"], headers, body)


def plain_headers(
    delivery_id: str, webhook_id: str, attempt: int, about: Row | Mapping[str, Any], at: int
) -> dict[str, str]:
    """All but the secret and the signature. `about` has repo_seq, depth and is_test."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "webhook-id": delivery_id,
        "webhook-timestamp": str(at // SECOND),
        "X-Hubgate-Webhook": webhook_id,
        "X-Hubgate-Attempt": str(attempt),
        "X-Hubgate-Sequence": str(about["repo_seq"]),
        "X-Hubgate-Depth": str(about["depth"]),
    }
    if about["is_test"]:
        headers["X-Hubgate-Test"] = "1"
    return headers


def with_webhook(event_body: bytes, webhook_id: str) -> bytes:
    """The frozen body and, last, the part that names the webhook."""
    return event_body[:-1] + f',"webhook":{{"id":"{webhook_id}","version":{VERSION}}}}}'.encode()
