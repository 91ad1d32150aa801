"""O50: a full database dump contains nothing that can be used as a credential."""

import base64
import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import httpx
import msgspec
from cryptography.hazmat.primitives import serialization
from tests.bed.apps import code_for, create_app, tokens_for
from tests.bed.dump import dump
from tests.bed.engines import SECRET_KEY
from tests.bed.issued_secrets import PASSWORDS, collect_issued_secrets
from tests.bed.people import create_user, submit
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.tokens.text import derived_token, read_token
from hubgate.server.mail import store as mail_store
from hubgate.server.mail.message import Message
from hubgate.server.oauth.keys.model import SigningKey
from hubgate.server.resources import Hub
from hubgate.server.secret import CannotOpen


def test_o50_private_keys_are_sealed(hub: RunningHub) -> None:
    dumped = hub.call(dump)

    async def private_halves(opened: Hub) -> list[bytes]:
        keys = [opened.keys.private_key(key) for key in await opened.keys.list_all()]
        found = []
        for key in keys:
            der = key.private_bytes(
                serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            secret_exponent = key.private_numbers().d
            found += [der[40:], secret_exponent.to_bytes(256), base64.b64encode(der)[20:]]
        return found

    halves = hub.call(private_halves)
    assert halves
    assert hub.call(lambda opened: opened.keys.published_jwks())[0]["n"].encode() in dumped, "the dump is complete"
    for secret in (*halves, SECRET_KEY.encode()):
        assert secret not in dumped


def test_o50_sealed_key_cannot_be_opened_in_another_row(hub: RunningHub) -> None:
    async def swap(opened: Hub) -> list[str]:
        await opened.keys.rotate()
        first, second = await opened.keys.list_all()
        sql = "UPDATE signing_keys SET sealed_private = :sealed WHERE kid = :kid"
        await opened.db.write(lambda tx: tx.exec(sql, {"sealed": first.sealed_private, "kid": second.kid}))
        return [key.kid for key in await opened.keys.list_all() if opens(opened, key)]

    def opens(opened: Hub, key: SigningKey) -> bool:
        try:
            opened.keys.private_key(key)
        except CannotOpen:
            return False
        return True

    assert len(hub.call(swap)) == 1


def spellings(secret: str) -> list[bytes]:
    """As issued, and as the bytes it encodes."""
    found = [secret.encode(), quote(secret, safe="").encode(), base64.b64encode(secret.encode())]
    found += [secret.encode().hex().encode(), secret[::-1].encode()]
    if re.fullmatch(r"[\w-]{43}", secret):
        raw = base64.urlsafe_b64decode(secret + "=")
        found += [raw, raw.hex().encode(), base64.b64encode(raw)]
    return found


def test_o50_no_issued_secret_is_in_the_dump(hub: RunningHub) -> None:
    given = collect_issued_secrets(hub)
    dumped = hub.call(dump)
    for kept in ("session", "open reset", "open confirmation", "open change of address", "open invitation"):
        assert hashlib.sha256(given[kept].encode()).digest() in dumped, f"the dump is complete: {kept}"
    for what, secret in given.items():
        for spelling in spellings(secret):
            assert spelling not in dumped, what


def test_o50_stored_hash_cannot_be_used_as_the_secret(hub: RunningHub) -> None:
    """Neither the hash nor another part of the database is accepted in place of the secret."""
    given = collect_issued_secrets(hub)
    doors = {
        "open reset": "reset",
        "open confirmation": "verify",
        "open change of address": "change-email",
        "open invitation": "invitations",
    }
    with hub.client() as client:
        for what, door in doors.items():
            assert client.get(f"/{door}/{given[what]}").status_code == 200, what
            for stolen in stolen_hash(given[what]):
                assert client.get(f"/{door}/{stolen}").status_code == 404
        for stolen in stolen_hash(given["session"]):
            client.cookies.set("token", stolen)
            assert client.get("/settings/profile").status_code == 303


def stolen_hash(secret: str) -> list[str]:
    return presentable(hashlib.sha256(secret.encode()).digest())


def presentable(stored: bytes) -> list[str]:
    return [stored.hex(), base64.urlsafe_b64encode(stored).rstrip(b"=").decode()]


def stolen_key(token: str) -> list[str]:
    """The stored form of a token, raw and formatted as a token of the same kind and hour."""
    read = read_token(token)
    assert read is not None, token
    kind, key = read
    return [*presentable(key), *presentable(key[4:]), derived_token(kind, token, key)[0]]


def test_o50_stored_hash_of_an_apps_secret_cannot_be_used_as_the_secret(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    client = create_app(hub, ada, refresh_tokens=True)
    tokens, code = tokens_for(client, ada), code_for(client, ada)
    dumped = hub.call(dump)

    def userinfo(token: str) -> int:
        return httpx.get(f"{hub.url}/oauth/userinfo", headers={"authorization": f"Bearer {token}"}).status_code

    def refresh(token: str) -> int:
        form = {"grant_type": "refresh_token", "refresh_token": token}
        return client.post("/oauth/token", form).status_code

    def ask(secret: str) -> int:
        form = {"token": tokens["access_token"]}
        return httpx.post(f"{hub.url}/oauth/introspect", data=form, auth=(client.id, secret)).status_code

    def redeem(code: str) -> int:
        return client.redeem(code).status_code

    doors: list[tuple[str, Callable[[str], int], int]] = [
        (tokens["access_token"], userinfo, 401),
        (tokens["refresh_token"], refresh, 400),
        (code, redeem, 400),
    ]
    for secret, door, refusal in doors:
        read = read_token(secret)
        assert read is not None
        assert read[1] in dumped, "this is how it is stored"
        for stolen in stolen_key(secret):
            assert door(stolen) == refusal, stolen
        assert door(secret) == 200
    assert client.secret is not None
    assert hashlib.sha256(client.secret.encode()).digest() in dumped
    for stolen in stolen_hash(client.secret):
        for dressed in (stolen, f"hfcs_{stolen}"):
            assert ask(dressed) == 401
    assert ask(client.secret) == 200


def test_o50_queued_mail_is_sealed(hub: RunningHub) -> None:
    create_user(hub, "ada")
    _block_mail(hub.settings.data_dir / "mail")
    with hub.client() as client:
        submit(client, "/join", username="bob", email="bob@example.org", password=PASSWORDS[0])
        submit(client, "/reset", email="ada@example.org")

    async def waiting(opened: Hub) -> list[Message]:
        rows = await opened.db.read_long(mail_store.sealed)
        plain = [opened.secret.open(bytes(row["sealed"]), f"mails/{row['id']}") for row in rows]
        return [msgspec.json.decode(text, type=Message) for text in plain]

    until(lambda: "was not sent" in hub.log)
    mails = hub.call(waiting)
    assert {mail.recipient for mail in mails} >= {"ada@example.org", "bob@example.org"}
    dumped = hub.call(dump)
    for mail in mails:
        for secret in re.findall(r"/(?:verify|reset)/([\w-]+)", mail.text):
            assert hashlib.sha256(secret.encode()).digest() in dumped
            for spelling in spellings(secret):
                assert spelling not in dumped
        assert mail.text.encode() not in dumped


def _block_mail(folder: Path) -> None:
    """A file in place of the folder, so that nothing can be written there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("")
