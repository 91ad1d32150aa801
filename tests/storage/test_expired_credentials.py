"""Expired codes, tokens, secrets and documents are deleted, and nothing before."""

from tests.bed.apps import code_for, create_app, tokens_for
from tests.bed.cimd_documents import store_document
from tests.bed.people import api, create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.resources import Hub
from hubgate.server.worker.sweep import Sweep

TABLES = ("codes", "app_tokens", "refresh_tokens", "app_secrets", "cimd_documents")
DAY = 24 * 60 * 60


def rows(hub: RunningHub) -> dict[str, int]:
    async def work(opened: Hub) -> dict[str, int]:
        found = {}
        for table in TABLES:
            row = await opened.db.one(f"SELECT count(*) AS rows FROM {table}")
            found[table] = row["rows"] if row else -1
        return found

    return hub.call(work)


def swept(hub: RunningHub) -> dict[str, int]:
    hub.call(lambda opened: Sweep(opened.db, opened.clock).step())
    return rows(hub)


def test_expired_rows_are_deleted_and_no_others(hub: RunningHub) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    client = create_app(hub, olga, refresh_tokens=True)
    tokens = tokens_for(client, ada)
    code_for(client, ada, prompt="consent")
    store_document(hub)
    with api(hub, create_token(hub, olga)) as owner:
        owner.post(f"/api/settings/applications/{client.id}/secret", json={"overlapSeconds": 2 * 60 * 60})
    everything = {"codes": 2, "app_tokens": 1, "refresh_tokens": 1, "app_secrets": 2, "cimd_documents": 1}
    assert rows(hub) == swept(hub) == everything
    hub.clock.advance(61)
    assert swept(hub) == everything, "a used code is remembered, to know a replay"
    hub.clock.advance(600)
    everything["codes"] = 0
    assert swept(hub) == everything
    hub.clock.advance(2 * 60 * 60)
    everything["app_secrets"] = 1
    assert swept(hub) == everything
    with api(hub, tokens["access_token"]) as app:
        assert app.get("/oauth/userinfo").status_code == 200
    hub.clock.advance(6 * 60 * 60)
    everything["app_tokens"] = 0
    assert swept(hub) == everything
    hub.clock.advance(DAY)
    assert swept(hub) == everything, "the last good copy of a document stands in for a day"
    hub.clock.advance(DAY)
    everything["cimd_documents"] = 0
    assert swept(hub) == everything
    hub.clock.advance(88 * DAY)
    assert swept(hub) == {**everything, "refresh_tokens": 0}
