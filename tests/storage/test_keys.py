"""The life of a signing key, with a controlled clock."""

import asyncio

import pytest
from tests.bed.clock import FrozenClock
from tests.bed.engines import SECRET_KEY, Engine, opened_database

from hubgate.server.clock import HOUR, MINUTE
from hubgate.server.errors import Conflict, NotFound
from hubgate.server.oauth.keys.model import LEAD, OVERLAP, KeyState, current_key, state_of
from hubgate.server.oauth.keys.ring import KeyRing
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database


def ring_on(db: Database, clock: FrozenClock) -> KeyRing:
    return KeyRing(db, ServerSecret(SECRET_KEY), clock)


async def empty(db: Database) -> None:
    await db.write(lambda tx: tx.exec("DELETE FROM signing_keys"))


async def states(ring: KeyRing) -> list[KeyState]:
    keys = await ring.list_all()
    return [state_of(key, keys, ring.clock()) for key in keys]


async def test_rotation_follows_its_schedule(engine: Engine, clock: FrozenClock) -> None:
    async with opened_database(engine.fresh_url()) as db:
        await empty(db)
        ring = ring_on(db, clock)
        await ring.ensure_signing_key()
        await ring.ensure_signing_key()
        assert await states(ring) == [KeyState.SIGNING]
        await ring.rotate()
        assert await states(ring) == [KeyState.SIGNING, KeyState.WAITING]
        assert len(await ring.published_jwks()) == 2, "published before it signs"
        clock.now += LEAD
        assert await states(ring) == [KeyState.RETIRING, KeyState.SIGNING]
        clock.now += OVERLAP - MINUTE
        assert len(await ring.published_jwks()) == 2, "published until its last token has expired"
        assert OVERLAP > HOUR
        clock.now += MINUTE
        assert await states(ring) == [KeyState.RETIRED, KeyState.SIGNING]
        assert [jwk["kid"] for jwk in await ring.published_jwks()] == [(await ring.list_all())[1].kid]
        for key in await ring.list_all():
            ring.check(key)


async def test_concurrent_first_starts_create_one_key(engine: Engine, clock: FrozenClock) -> None:
    url = engine.fresh_url()
    async with opened_database(url) as here, opened_database(url) as there:
        await empty(here)
        await asyncio.gather(*(ring_on(db, clock).ensure_signing_key() for db in (here, there, here, there)))
        assert len(await ring_on(here, clock).list_all()) == 1


async def test_concurrent_rotations_never_share_a_number(engine: Engine, clock: FrozenClock) -> None:
    """If they overlap, one finds its number taken and says so; one after the other, both succeed."""
    url = engine.fresh_url()
    async with opened_database(url) as here, opened_database(url) as there:
        outcomes = await asyncio.gather(*(ring_on(db, clock).rotate() for db in (here, there)), return_exceptions=True)
        refused = sum(isinstance(outcome, Conflict) for outcome in outcomes)
        keys = await ring_on(here, clock).list_all()
        assert refused < 2
        assert [key.seq for key in keys] == list(range(1, 4 - refused))


async def test_revoked_key_never_signs_again_and_another_does(engine: Engine, clock: FrozenClock) -> None:
    async with opened_database(engine.fresh_url()) as db:
        ring = ring_on(db, clock)
        clock.now = (await ring.list_all())[0].created_at
        first = (await ring.list_all())[0].kid
        await ring.revoke(first)
        assert await states(ring) == [KeyState.REVOKED, KeyState.SIGNING]
        with pytest.raises(NotFound):
            await ring.revoke(first)
        clock.now += 100 * OVERLAP
        signing = current_key(await ring.list_all(), clock())
        assert signing is not None
        assert signing.kid != first


@pytest.mark.parametrize("wait", [0, HOUR])
async def test_revoking_the_newest_key_leaves_a_successor(engine: Engine, clock: FrozenClock, wait: int) -> None:
    """The older key is already retiring: without a successor nothing would sign a day later."""
    async with opened_database(engine.fresh_url()) as db:
        await empty(db)
        ring = ring_on(db, clock)
        await ring.ensure_signing_key()
        newest = await ring.rotate()
        clock.now += wait
        await ring.revoke(newest.kid)
        for _ in range(60):
            clock.now += HOUR
            assert current_key(await ring.list_all(), clock()) is not None
            assert await ring.published_jwks()
