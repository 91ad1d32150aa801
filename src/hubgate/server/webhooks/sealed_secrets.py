"""Encryption of webhook secrets and signing keys under the server secret, each bound to its webhook."""

import base64
from functools import lru_cache, partial

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from hubgate.server.secret import CannotOpen, ServerSecret
from hubgate.server.storage.database import Database
from hubgate.server.webhooks.management import store
from hubgate.server.webhooks.model import Webhook

PUBLIC_PREFIX = "whpk_"
_BATCH = 500
# The sealed columns, and the kind of value in each.
_COLUMNS = {"secret": "secret", "old_secret": "secret", "private_key": "key"}


def sealed_secret(secret: ServerSecret, webhook_id: str, text: str) -> bytes:
    return secret.seal(text.encode("ascii"), _binding(webhook_id, "secret"))


def opened_secret(secret: ServerSecret, webhook_id: str, sealed: bytes) -> str:
    return secret.open(sealed, _binding(webhook_id, "secret")).decode("ascii")


def is_current_secret(secret: ServerSecret, webhook: Webhook, text: str) -> bool:
    """Whether `text` is the current secret. False if the stored secret cannot be decrypted: the owner can then set a
    new secret.
    """
    try:
        return webhook.secret is not None and opened_secret(secret, webhook.id, webhook.secret) == text
    except CannotOpen:
        return False


def new_key(secret: ServerSecret, webhook_id: str) -> tuple[bytes, str]:
    """Create a signing key: the sealed private key and the public key. A key shared by all webhooks would not
    authenticate the sender: anyone can point their own webhook at your receiver.
    """
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return secret.seal(private, _binding(webhook_id, "key")), PUBLIC_PREFIX + base64.b64encode(public).decode()


@lru_cache(maxsize=1024)
def opened_key(secret: ServerSecret, webhook_id: str, sealed: bytes) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(secret.open(sealed, _binding(webhook_id, "key")))


async def reseal(db: Database, secret: ServerSecret) -> int:
    """Re-encrypt the secrets and keys of all webhooks with the server's first key, and return the number of changed
    values. A value that no configured key decrypts is not changed: it is readable again once the key is restored.
    """
    changed, after = 0, ""
    while rows := await db.read_long(partial(store.sealed_values, after=after, limit=_BATCH)):
        after = rows[-1]["id"]
        for row in rows:
            for column, kind in _COLUMNS.items():
                old = row[column]
                new = None if old is None else _resealed(secret, row["id"], kind, bytes(old))
                if new is not None:
                    # A value replaced since the read is already encrypted with the new key.
                    write = partial(
                        store.replace_sealed_value, webhook_id=row["id"], column=column, old=bytes(old), new=new
                    )
                    changed += await db.write(write)
    return changed


def _resealed(secret: ServerSecret, webhook_id: str, kind: str, sealed: bytes) -> bytes | None:
    """A value re-encrypted with the server's first key; None if the value already uses that key or no key decrypts it.
    `kind` is "secret" or "key".
    """
    if secret.is_sealed_with_first_key(sealed):
        return None
    try:
        return secret.seal(secret.open(sealed, _binding(webhook_id, kind)), _binding(webhook_id, kind))
    except CannotOpen:
        return None


def _binding(webhook_id: str, kind: str) -> str:
    return f"webhook {kind} {webhook_id}"
