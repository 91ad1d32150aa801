"""O52: forged Host, X-Forwarded-Host, X-Forwarded-Proto and X-Forwarded-For from an untrusted peer change nothing."""

from pathlib import Path

import pytest
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.running import RunningHub, running

FORGED = {
    "host": "evil.example",
    "x-forwarded-host": "evil.example",
    "x-forwarded-proto": "https",
    "x-forwarded-for": "203.0.113.9",
    "forwarded": "host=evil.example;proto=https;for=203.0.113.9",
}


@pytest.mark.parametrize("path", ["/", "/docs/api", "/nothing", "/api/nothing", "/api/openapi.json", "/oauth/jwks"])
def test_o52_links_and_cookies_stay_ours(hub: RunningHub, path: str) -> None:
    with hub.client() as client:
        plain, forged = client.get(path), client.get(path, headers=FORGED)
    assert forged.status_code == plain.status_code
    assert "evil.example" not in forged.text + str(forged.headers)
    assert "secure" not in forged.headers.get("set-cookie", "").lower()


def test_o52_paging_links_stay_ours(hub: RunningHub) -> None:
    from tests.bed.testbuild import TABLE

    hub.call(lambda opened: opened.db.write(lambda tx: tx.exec(TABLE)))
    with hub.client() as client:
        for name in ("a", "b"):
            client.post("/api/test/write", json={"name": name, "value": ""})
        assert client.get("/api/test/names?limit=1", headers=FORGED).links["next"]["url"].startswith(hub.url)


@pytest.mark.parametrize("server", ["granian", "uvicorn"])
def test_o52_an_untrusted_peer_cannot_choose_its_address(sqlite_template: Path, tmp_path: Path, server: str) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with running(settings_for(url, tmp_path, server=server)) as hub, hub.client() as client:
        assert client.post("/api/test/echo", data={"a": "b"}, headers=FORGED).json()["ip"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("forwarded", "seen"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9, 10.1.1.1", "203.0.113.9"),
        ("not an address", "127.0.0.1"),
        ("203.0.113.9, not an address", "127.0.0.1"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8::1", "2001:db8::1"),
        ("203.0.113.9:51234", "203.0.113.9"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("", "127.0.0.1"),
    ],
)
def test_o52_a_trusted_proxy_is_believed_only_for_the_nearest_stranger(
    sqlite_template: Path, tmp_path: Path, forwarded: str, seen: str
) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with running(settings_for(url, tmp_path, trusted_proxies="127.0.0.0/8,10.0.0.0/8")) as hub, hub.client() as client:
        response = client.post("/api/test/echo", data={"a": "b"}, headers={**FORGED, "x-forwarded-for": forwarded})
        assert response.json()["ip"] == seen
        assert "evil.example" not in client.get("/api/openapi.json", headers=FORGED).text
