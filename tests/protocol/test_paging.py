"""Lists: absolute Link headers, cursors that survive changes, clear errors."""

import httpx
import pytest
from tests.bed.running_hub import RunningHub
from tests.bed.testbuild import TABLE

from hubgate.server.storage.database import Tx

pytestmark = pytest.mark.one_engine


@pytest.fixture
def listed(hub: RunningHub) -> RunningHub:
    async def fill(tx: Tx) -> None:
        await tx.exec(TABLE)
        await tx.exec_many(
            "INSERT INTO test_writes (name, value) VALUES (:name, '')", [{"name": f"n{i:02d}"} for i in range(25)]
        )

    hub.call(lambda opened: opened.db.write(fill))
    return hub


def next_of(response: httpx.Response) -> str | None:
    link = response.links.get("next")
    return link["url"] if link else None


def test_following_links_shows_everything_once(listed: RunningHub) -> None:
    with listed.client() as client:
        seen, url = [], "/api/test/names?limit=10&extra=a%26b"
        while url:
            response = client.get(url)
            seen += response.json()
            url = next_of(response)
            if url:
                assert url.startswith(listed.url)
                assert "limit=10&extra=a%26b&cursor=" in url
    assert seen == [f"n{i:02d}" for i in range(25)]


def test_concurrently_added_rows_neither_repeat_nor_hide_others(listed: RunningHub) -> None:
    with listed.client() as client:
        first = client.get("/api/test/names?limit=10")
        client.post("/api/test/write", json={"name": "a-new-first", "value": ""})
        second = client.get(next_of(first))
    assert second.json()[0] == "n10"


def test_exactly_full_page_has_no_next(listed: RunningHub) -> None:
    with listed.client() as client:
        assert next_of(client.get("/api/test/names?limit=25")) is None
        assert next_of(client.get("/api/test/names?limit=24")) is not None


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=-1",
        "limit=x",
        "limit=²",
        "limit=1&limit=2",
        "cursor=%00",
        "cursor=AAAA",
        "cursor=WzFd",
        "cursor=e30",
    ],
)
def test_invalid_paging_is_400(listed: RunningHub, query: str) -> None:
    with listed.client() as client:
        assert client.get(f"/api/test/names?{query}").status_code == 400


def test_limit_above_the_maximum_is_reduced(listed: RunningHub) -> None:
    with listed.client() as client:
        assert len(client.get("/api/test/names?limit=999999999999999999999").json()) == 25
