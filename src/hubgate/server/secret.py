"""Hashes tokens, and encrypts ("seals") values that the hub must read back.

Tokens are random, so a plain SHA-256 is enough to make a stolen table useless. Private keys, webhook secrets and queued
mail are sealed with AES-256-GCM under the server secret. The storage location is authenticated, so a sealed value that
is moved to another row does not open. Each purpose has a separate key, derived with HKDF-SHA256.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
from functools import lru_cache
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from hubgate.server.errors import StartupError
from hubgate.server.setting_values import secret_key

_VERSION = b"\x01"
_KEY_TAG_BYTES = 4
_NONCE_BYTES = 12

# More random bytes than characters, because some bytes are not used.
_SPARE_BYTES = 8


class RandomText:
    """Creates random text of some letters, each of them equally likely and unpredictable.

    Random bytes become letters by a look-up. The highest bytes are dropped: they would make some letters more likely.
    Arithmetic on one large random number takes several times as long.
    """

    def __init__(self, letters: str) -> None:
        used = 256 - 256 % len(letters)
        self._letter_of_byte = (letters.encode() * 256)[:256]
        self._dropped = bytes(range(used, 256))

    def __call__(self, length: int) -> str:
        text = b""
        while len(text) < length:
            random = secrets.token_bytes(length + _SPARE_BYTES)
            text += random.translate(self._letter_of_byte, self._dropped)
        return text[:length].decode()


class CannotOpen(Exception):
    """The value is damaged, or was sealed with a key that is not configured or for another location."""


class ServerSecret:
    """The operator's keys: the first key seals and signs, all keys open and verify."""

    def __init__(self, keys: str) -> None:
        self._masters = [key.encode() for key in secret_key(keys).split(",")]
        self._derived = lru_cache(maxsize=64)(_derive)
        self._ciphers = {master: AESGCM(self._derived(master, "seal")) for master in self._masters}

    def seal(self, plaintext: bytes, location: str) -> bytes:
        master, nonce = self._masters[0], os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[master].encrypt(nonce, plaintext, location.encode())
        return _VERSION + self._tag(master) + nonce + sealed

    def open(self, sealed: bytes, location: str) -> bytes:
        tag, nonce, body = sealed[1:5], sealed[5:17], sealed[17:]
        for master in self._masters:
            if sealed[:1] == _VERSION and self._tag(master) == tag:
                try:
                    return self._ciphers[master].decrypt(nonce, body, location.encode())
                except InvalidTag:
                    break
        raise CannotOpen(location)

    def is_sealed_with_first_key(self, sealed: bytes) -> bool:
        return sealed[1:5] == self._tag(self._masters[0])

    def mac(self, purpose: str, message: bytes) -> bytes:
        return hmac.digest(self._derived(self._masters[0], purpose), message, "sha256")

    def macs(self, purpose: str, message: bytes) -> list[bytes]:
        """The MACs under all keys, in the order of the keys, to find values that were stored before a rotation."""
        return [hmac.digest(self._derived(master, purpose), message, "sha256") for master in self._masters]

    def mac_matches(self, purpose: str, message: bytes, given: bytes) -> bool:
        """Whether the MAC is valid under any key: forms that were opened before a rotation stay valid."""
        return any(hmac.compare_digest(mac, given) for mac in self.macs(purpose, message))

    def _tag(self, master: bytes) -> bytes:
        return self._derived(master, "key tag")[:_KEY_TAG_BYTES]


def _derive(master: bytes, purpose: str) -> bytes:
    return HKDF(SHA256(), length=32, salt=None, info=b"hubgate " + purpose.encode()).derive(master)


def fingerprint(token: str) -> bytes:
    """The SHA-256 of a random token, which is stored instead of the token."""
    return hashlib.sha256(token.encode()).digest()


def existing_secret(configured: str, data_dir: Path, is_local: bool) -> ServerSecret:
    """The configured secret, or the one that the first start created in the data folder.

    `is_local`: only this machine uses the database. Machines that share a database need the same configured secret.
    """
    if configured:
        return ServerSecret(configured)
    if not is_local:
        raise StartupError(
            "HUBGATE_SECRET_KEY must be set with a database server, the same on every machine. "
            'Create one with: python3 -c "import secrets; print(secrets.token_urlsafe(48))"'
        )
    path = secret_file(data_dir)
    try:
        keys = secret_key(path.read_text("utf-8"))
    except FileNotFoundError:
        raise StartupError(
            f"{path} is missing. Restore it from a backup: without this file, sealed data cannot be opened."
        ) from None
    except (OSError, ValueError) as error:
        raise StartupError(f"Cannot read {path}: {error}. Restore it from a backup.") from error
    if not keys:
        raise StartupError(f"{path} contains no key. Restore it from a backup.")
    return ServerSecret(keys)


def existing_or_new_secret(configured: str, data_dir: Path, is_local: bool) -> ServerSecret:
    """The secret of a hub without sealed data. A missing secret file is created, readable only by its owner."""
    if not configured and is_local:
        try:
            _create(secret_file(data_dir))
        except OSError as error:
            raise StartupError(f"Cannot create {secret_file(data_dir)}: {error.strerror}.") from error
    return existing_secret(configured, data_dir, is_local)


def secret_file(data_dir: Path) -> Path:
    return data_dir / "secret.key"


def _create(path: Path) -> None:
    """Create the secret file. If several processes start at once, the first to link its draft wins."""
    if path.exists():
        return
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
