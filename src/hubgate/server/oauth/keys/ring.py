"""Use cases for signing keys: create the first, rotate, revoke, reseal, publish, check."""

import json
from functools import partial
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.clock import Clock
from hubgate.server.errors import Conflict, NotFound, StartupError
from hubgate.server.oauth.keys import store
from hubgate.server.oauth.keys.algorithms import ALGORITHMS, PrivateKey, key_id, public_jwk
from hubgate.server.oauth.keys.model import DEFAULT_ALGORITHM, LEAD, OVERLAP, SigningKey, current_key
from hubgate.server.secret import CannotOpen, ServerSecret
from hubgate.server.storage.database import Database, Tx

# Concurrent requests may create keys of several algorithms, of which only one gets the next number.
_TRIES = 5


class KeyRing(Struct, frozen=True):
    db: Database
    secret: ServerSecret
    clock: Clock

    async def ensure_signing_key(self, algorithm: str = DEFAULT_ALGORITHM) -> None:
        """Create a signing key if there is none, and check the secret. Concurrent calls add only one key."""
        now = self.clock()
        keys = await self.list_all()
        if current_key(keys, now, algorithm) is None:
            self.require_matching_secret(keys)
            # `seq` is from the same read: if another process took it first, this key is not added.
            fresh = self._generate(algorithm, _next_seq(keys), now, signs_from=now)
            await self.db.write(lambda tx: store.add(tx, fresh))
        self.require_matching_secret(await self.list_all())

    async def signing_key(self, algorithm: str) -> SigningKey | None:
        """The key that signs now. The first token that an app requests with an algorithm creates a key for it."""
        key = current_key(await self.list_all(), self.clock(), algorithm)
        for _ in range(_TRIES):
            if key is not None or algorithm not in ALGORITHMS:
                break
            await self.ensure_signing_key(algorithm)
            key = current_key(await self.list_all(), self.clock(), algorithm)
        return key

    def require_matching_secret(self, keys: list[SigningKey]) -> None:
        """Check that our secret opens the signing key. Otherwise a new key would be sealed with the wrong secret, and
        the next start would fail.
        """
        signing = current_key(keys, self.clock())
        try:
            if signing is not None:
                self.private_key(signing)
        except CannotOpen:
            raise StartupError(
                "The server secret does not open this hub's signing key. Set the secret it was sealed with."
            ) from None

    async def rotate(self, algorithm: str = DEFAULT_ALGORITHM) -> SigningKey:
        keys = await self.list_all()
        self.require_matching_secret(keys)
        now = self.clock()
        signs_from = now + LEAD if current_key(keys, now, algorithm) else now
        fresh = self._generate(algorithm, _next_seq(keys), now, signs_from)

        async def unit(tx: Tx) -> bool:
            if not await store.add(tx, fresh):
                return False
            await store.retire_before(tx, fresh, fresh.signs_from + OVERLAP)
            return True

        if not await self.db.write(unit):
            raise Conflict("Another rotation finished just now. List the keys with: hubgate admin keys list")
        return fresh

    async def revoke(self, kid: str) -> None:
        """Remove a leaked key from the published set at once, and ensure that another key signs."""
        now = self.clock()
        keys = await self.list_all()
        self.require_matching_secret(keys)
        algorithm = next((key.algorithm for key in keys if key.kid == kid), DEFAULT_ALGORITHM)
        fresh = self._generate(algorithm, _next_seq(keys), now, signs_from=now)

        async def unit(tx: Tx) -> bool:
            if not await store.revoke(tx, kid, now):
                return False
            left = [key for key in await store.list_all(tx) if key.algorithm == algorithm]
            lasting = [key for key in left if key.is_published(now) and key.published_until is None]
            signs_now = current_key(left, now, algorithm) is not None
            if not lasting:
                # All remaining keys are retiring. Add a successor now, or later no key would sign.
                successor = replace(fresh, signs_from=now + LEAD if signs_now else now)
                if not await store.add(tx, successor):
                    raise Conflict("The keys were changed just now. List the keys with: hubgate admin keys list")
            elif not signs_now:
                await store.set_signs_from(tx, lasting[-1].kid, now)
            return True

        if not await self.db.write(unit):
            raise NotFound(f"Signing key {kid} not found, or it was already revoked.")

    async def reseal(self) -> int:
        """Seal every private key with the first configured secret; returns how many were changed."""
        in_use = [key for key in await self.list_all() if key.revoked_at is None]
        stale = [key for key in in_use if not self.secret.is_sealed_with_first_key(key.sealed_private)]
        lost = []
        for key in stale:
            try:
                plain = self.secret.open(key.sealed_private, _seal_context(key.kid))
            except CannotOpen:
                lost.append(key.kid)
                continue
            sealed = self.secret.seal(plain, _seal_context(key.kid))
            await self.db.write(partial(store.replace_sealed, kid=key.kid, old=key.sealed_private, new=sealed))
        if lost:
            raise StartupError(
                f"No configured secret opens the signing keys {', '.join(lost)}; everything else was resealed."
            )
        return len(stale)

    async def list_all(self) -> list[SigningKey]:
        return await store.look_up(self.db)

    async def published_jwks(self) -> list[dict[str, Any]]:
        now = self.clock()
        return [json.loads(key.public_jwk) for key in await self.list_all() if key.is_published(now)]

    def private_key(self, key: SigningKey) -> PrivateKey:
        der = self.secret.open(key.sealed_private, _seal_context(key.kid))
        # Skip the slow validation of the RSA numbers: the seal proves that this hub created the key.
        loaded = serialization.load_der_private_key(der, None, unsafe_skip_rsa_key_validation=True)
        if not isinstance(loaded, PrivateKey):
            raise TypeError(f"signing key {key.kid} is not for {key.algorithm}")
        return loaded

    def check(self, key: SigningKey) -> None:
        """Check that the stored private and public keys match: sign and verify once."""
        algorithm = ALGORITHMS[key.algorithm]
        signature = algorithm.sign(self.private_key(key), b"check")
        if not algorithm.verify(json.loads(key.public_jwk), signature, b"check"):
            raise InvalidSignature

    def _generate(self, algorithm: str, seq: int, now: int, signs_from: int) -> SigningKey:
        private = ALGORITHMS[algorithm].generate()
        members = ALGORITHMS[algorithm].public_members(private)
        kid = key_id(members)
        der = private.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return SigningKey(
            kid=kid,
            seq=seq,
            algorithm=algorithm,
            public_jwk=public_jwk(algorithm, members),
            sealed_private=self.secret.seal(der, _seal_context(kid)),
            created_at=now,
            signs_from=signs_from,
            published_until=None,
            revoked_at=None,
        )


def _next_seq(keys: list[SigningKey]) -> int:
    return max((key.seq for key in keys), default=0) + 1


def _seal_context(kid: str) -> str:
    return f"signing_keys.{kid}"
