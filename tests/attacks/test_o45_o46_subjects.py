"""O45, O46: which user a subject token names, and which subject tokens are invalid."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.apps import Client, tokens_for
from tests.bed.engines import Engine, settings_for
from tests.bed.exchange import ACCESS_TOKEN, GRANT, USER_EMAIL, create_exchange_app, send_exchange
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.accounts.model import User

NO_MEMBER, MALFORMED = (400, "invalid_grant"), (400, "invalid_request")
# Kelvin sign for k, Cyrillic a, full width, ligature, soft hyphen, zero width, dotless i, accents added, another order.
LOOK_ALIKES = (
    "\u0430da@example.org",
    "ad\uff41@example.org",
    "ada@e\u00adxample.org",
    "ada\u200b@example.org",
    "\u202eada@example.org",
    "ada@example.o\u1d63g",
    "ada@exam\u0440le.org",
    "a\u0301da@example.org",
    "ada@example\u3002org",
    "ada@example.org.",
    "ada+x@example.org",
    "ada@example.org@evil.example",
    "evil@evil.example,ada@example.org",
    "<ada@example.org>",
    '"ada"@example.org',
    "Ada <ada@example.org>",
    "ada@example.org\nbob@example.org",
    "a%64a@example.org",
    "%@example.org",
    "a_a@example.org",
    "@",
    "ada@",
    "@example.org",
    f"{'a' * 300}@example.org",
)


def status_and_error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error", "a token")


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def client(hub: RunningHub, ada: User) -> Client:
    return create_exchange_app(hub, create_organization(hub, "acme", ada))


def test_o45_look_alike_addresses_name_nobody(hub: RunningHub, client: Client, ada: User) -> None:
    for email in LOOK_ALIKES:
        assert status_and_error(send_exchange(client, email)) == NO_MEMBER, email
    for email in ("ADA@EXAMPLE.ORG", " ada@example.org "):
        assert status_and_error(send_exchange(client, email)) == (200, "a token"), email
    with api(hub, create_token(hub, ada)) as script:
        entries = script.get("/api/organizations/acme/audit-log/export?q=type:oauth.token").json()
    refused = [entry for entry in entries if entry["data"]["result"] == "refused"]
    assert len(refused) == len(LOOK_ALIKES)
    assert all(entry["message"].isprintable() for entry in refused), "nothing turns the reader's line around"


def test_o45_account_with_a_look_alike_address_is_not_a_member(hub: RunningHub, client: Client) -> None:
    """Somebody else may have that address; that does not make them a member."""
    mallory = create_user(hub, "mallory")
    sql = "UPDATE users SET email = :email WHERE id = :id"
    look = {"email": "\u0430da@example.org", "id": mallory.id}
    hub.call(lambda opened: opened.db.write(lambda tx: tx.exec(sql, look)))
    assert status_and_error(send_exchange(client, look["email"])) == NO_MEMBER


@pytest.mark.one_engine
def test_o45_unverified_address_is_rejected(hub: RunningHub, ada: User) -> None:
    create_user(hub, "carol", verified=False)
    client = create_exchange_app(hub, create_organization(hub, "club", ada, carol="admin"))
    assert status_and_error(send_exchange(client, "carol@example.org")) == NO_MEMBER


@pytest.mark.one_engine
def test_o46_invalid_subject_tokens_are_rejected(hub: RunningHub, client: Client, ada: User) -> None:
    """An access token as subject is rejected, and does not appear in the organization's log."""
    token = tokens_for(client, ada)["access_token"]
    for subject in ("ada", "x", token, "ada\uff20example.org", "ada%40example.org"):
        assert status_and_error(send_exchange(client, subject)) == MALFORMED, subject
    assert status_and_error(send_exchange(client, f"{token}@example.org")) == NO_MEMBER
    form: dict[str, Any] = {"grant_type": GRANT, "subject_token": "ada@example.org", "subject_token_type": USER_EMAIL}
    changes: list[dict[str, Any]] = [
        {"subject_token": ""},
        {"subject_token": ["ada@example.org", "bob@example.org"]},
        {"subject_token_type": ""},
        {"subject_token_type": ACCESS_TOKEN},
        {"subject_token_type": ACCESS_TOKEN, "subject_token": token},
        {"subject_token_type": "urn:ietf:params:oauth:token-type:id_token"},
        {"subject_token_type": USER_EMAIL.upper()},
        {"subject_token_type": [USER_EMAIL, ACCESS_TOKEN]},
        {"requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token"},
        {"actor_token": token, "actor_token_type": ACCESS_TOKEN},
        {"actor_token_type": ACCESS_TOKEN},
    ]
    with hub.client(auth=client.basic) as http:
        for change in changes:
            assert status_and_error(http.post("/oauth/token", data={**form, **change})) == MALFORMED, change
            assert status_and_error(http.post("/oauth/token", json={**form, **change})) == MALFORMED, change
        for fine in (
            {"requested_token_type": ACCESS_TOKEN},
            {"audience": ["a", "b"]},
            {"resource": hub.url},
        ):
            assert status_and_error(http.post("/oauth/token", data={**form, **fine})) == (200, "a token")
    with api(hub, create_token(hub, ada)) as script:
        export = script.get("/api/organizations/acme/audit-log/export?q=type:oauth.token")
    assert token[12:] not in export.text
    # Repeated parameters are rejected before the app is authenticated.
    unread = 4
    refused = 5 + 1 + 2 * len(changes) - unread
    assert [entry["data"]["result"] for entry in export.json()].count("refused") == refused


@pytest.mark.one_engine
def test_o46_operator_may_allow_further_subject_token_types(engine: Engine, tmp_path: Path) -> None:
    one, other = "urn:other:token-type:user-email", "urn:another:token-type:mail"
    settings = settings_for(engine.fresh_url(), tmp_path, subject_token_type_aliases=one)
    with run_hub(settings) as hub:
        client = create_exchange_app(hub, create_organization(hub, "acme", create_user(hub, "ada")))
        for kind, answer in ((one, (200, "a token")), (USER_EMAIL, (200, "a token")), (other, MALFORMED)):
            assert status_and_error(send_exchange(client, "ada@example.org", subject_token_type=kind)) == answer
