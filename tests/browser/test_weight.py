"""Styles and scripts are compressed and cached; nothing exceeds the size budget of the UX brief."""

import gzip
import re
from collections.abc import Iterator

import httpx
import pytest
from tests.bed.running_hub import RunningHub

BUDGET = {"css": 18_000, "js": 6_000, "svg": 4_000}


@pytest.fixture
def stage(sqlite_hub: RunningHub) -> Iterator[httpx.Client]:
    with sqlite_hub.client() as client:
        yield client


def _assets(client: httpx.Client) -> list[str]:
    found = re.findall(r'"(/static/[^"]+)"', client.get("/").text)
    assert {address.rpartition(".")[2] for address in found} == set(BUDGET)
    return found


def test_pages_are_not_compressed(stage: httpx.Client) -> None:
    """The length of a compressed page would reveal the CSRF token in it (BREACH)."""
    assert "content-encoding" not in stage.get("/", headers={"accept-encoding": "gzip"}).headers


def test_assets_are_within_budget_and_cached_permanently(stage: httpx.Client) -> None:
    for address in _assets(stage):
        with stage.stream("GET", address, headers={"accept-encoding": "br, gzip"}) as answer:
            compressed = b"".join(answer.iter_raw())
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["vary"] == "accept-encoding"
        assert "immutable" in answer.headers["cache-control"]
        assert len(compressed) == int(answer.headers["content-length"]) < BUDGET[address.rpartition(".")[2]]
        plain = stage.get(address, headers={"accept-encoding": "identity"})
        assert gzip.decompress(compressed) == plain.content


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip", "gzip"),
        ("br;q=1, GZIP; q=0.5", "gzip"),
        ("gzip;q=0", None),
        ("gzip;q=0.000", None),
        ("", None),
        ("br", None),
    ],
)
def test_gzip_is_sent_only_where_accepted(stage: httpx.Client, accepted: str, encoding: str | None) -> None:
    for address in _assets(stage):
        answer = stage.get(address, headers={"accept-encoding": accepted})
        assert answer.headers.get("content-encoding") == encoding
        assert answer.headers["vary"] == "accept-encoding"


def test_changed_content_has_a_new_url(stage: httpx.Client) -> None:
    for address in _assets(stage):
        stale = re.sub(r"/static/\w+/", "/static/0123456789abcdef/", address)
        assert stage.get(stale).status_code == 404
