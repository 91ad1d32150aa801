"""O62: a database dump does not reveal which user codes are open."""

import hashlib
import hmac
from dataclasses import replace
from pathlib import Path

from tests.bed import devices
from tests.bed.apps import create_app
from tests.bed.dump import dump
from tests.bed.engines import SECRET_KEY, Engine, settings_for
from tests.bed.people import browser_of, create_user
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.accounts.tokens.text import read_token
from hubgate.server.resources import Hub


def spellings(code: str) -> list[bytes]:
    plain = code.replace("-", "")
    return [text.encode() for text in (code, plain, code.lower(), plain.lower(), f"{code}\n")]


async def user_code_columns(opened: Hub) -> list[bytes]:
    rows = await opened.db.read_long(lambda tx: tx.all("SELECT user_code FROM device_codes"))
    return [bytes(row["user_code"]) for row in rows]


def test_o62_hashing_all_codes_does_not_find_the_stored_one(hub: RunningHub) -> None:
    """All 25 billion codes can be hashed in a minute; without the server's key that finds none of them."""
    started = devices.start(create_app(hub))
    dumped, (stored,) = hub.call(dump), hub.call(user_code_columns)
    assert stored in dumped, "the dump is complete"
    read = read_token(started["device_code"])
    assert read is not None
    for guess in spellings(started["user_code"]):
        assert guess not in dumped
        # Available to a thief of the database: plain hashes, and hashes salted with any value of the row.
        for salt in (b"", read[1], read[1][4:], b"user code", started["device_code"].encode()):
            for name in ("md5", "sha1", "sha256", "sha512"):
                for found in (hashlib.new(name, salt + guess), hmac.new(salt, guess, name)):
                    assert found.digest()[:16] not in dumped
                    assert found.hexdigest()[:32].encode() not in dumped
    assert SECRET_KEY.encode() not in dumped


def test_o62_stored_code_depends_on_the_servers_key(engine: Engine, tmp_path: Path) -> None:
    """Under another key the same dump opens no device; under a new key with the old one retained it does."""
    settings = settings_for(engine.fresh_url(), tmp_path)
    with run_hub(settings) as hub:
        ada = create_user(hub, "ada")
        code = devices.start(create_app(hub))["user_code"]
        with browser_of(hub, ada) as browser:
            assert devices.enter(browser, code).status_code == 200
    for secret_key, found in (("the thief of the database has a key too", 404), (f"{'n' * 40},{SECRET_KEY}", 200)):
        with run_hub(replace(settings, secret_key=secret_key)) as hub, browser_of(hub, ada) as browser:
            assert devices.enter(browser, code).status_code == found
