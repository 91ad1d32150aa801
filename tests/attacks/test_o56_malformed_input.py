"""O56: a 10 MB form body, 10,000 parameters, invalid UTF-8 and NUL bytes get a clear 4xx, never a 500."""

import pytest
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

FORM = {"content-type": "application/x-www-form-urlencoded"}
MANY = b"&".join(b"a%d=b" % number for number in range(10_000))

BODIES = {
    "ten megabytes": b"a=" + b"b" * 10_000_000,
    "ten thousand parameters": MANY,
    "invalid UTF-8": b"a=%ff%fe",
    "raw invalid UTF-8": b"a=\xff\xfe",
    "an overlong encoding": b"a=%c0%af",
    "a surrogate": b"a=%ed%a0%80",
    "NUL": b"a=b%00c",
    "raw NUL": b"a=b\0c",
    "NUL in a name": b"a%00=b",
}


@pytest.mark.parametrize("path", ["/api/test/echo", "/theme"])
@pytest.mark.parametrize("what", BODIES)
def test_o56_malformed_bodies_are_rejected(hub: RunningHub, path: str, what: str) -> None:
    with hub.client() as client:
        response = client.post(path, content=BODIES[what], headers=FORM)
        assert 400 <= response.status_code < 500, response.text
        assert response.headers["x-request-id"]
        # The server still works.
        assert client.get("/readyz").status_code == 200


LONE_SURROGATE, NUL = "WyJcdWQ4MDAiXQ", "WyJcdTAwMDAiXQ"
QUERIES = [
    f"cursor={LONE_SURROGATE}",
    f"cursor={NUL}",
    "%08=1&%08=2",
    "%7f=1&%7f=2",
    "a=%ff",
    "a=%00",
    "%00=a",
    MANY[:9000].decode(),
    "limit=%ED%A0%80",
    "cursor=" + "A" * 9000,
    "a=1&a=2",
]


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_o56_malformed_queries_are_rejected(hub: RunningHub, query: str) -> None:
    with hub.client() as client:
        assert client.get(f"{hub.url}/api/test/names?{query}").status_code == 400


JSON_BODIES = {
    "NUL": (b'{"name": "a\\u0000b", "value": "x"}', 422),
    "lone surrogate": (b'{"name": "\\ud800", "value": "x"}', 400),
    "deep nesting": (b'{"name": ' + b"[" * 50_000, 422),
    "deep nesting beside a NUL": (b'{"name": "\\u0000", "value": ' + b"[" * 20_000 + b"]" * 20_000 + b"}", 422),
    "a control character in a name": (b'{"a\\u0008b": 1, "name": "x", "value": "y"}', 422),
    "a name of 100 KB": (b'{"' + b"n" * 100_000 + b'": 1, "name": "x", "value": "y"}', 422),
    "huge number": (b'{"name": "a", "value": 1' + b"0" * 5_000 + b"}", 422),
    "not UTF-8": (b'{"name": "\xff", "value": "x"}', 400),
}


@pytest.mark.parametrize("what", JSON_BODIES)
def test_o56_malformed_json_is_rejected(hub: RunningHub, what: str) -> None:
    from tests.bed.testbuild import TABLE

    hub.call(lambda opened: opened.db.write(lambda tx: tx.exec(TABLE)))
    body, status = JSON_BODIES[what]
    with hub.client() as client:
        response = client.post("/api/test/write", content=body, headers={"content-type": "application/json"})
    assert response.status_code == status, response.text
    assert len(response.headers["x-error-message"]) <= 300
    assert response.headers["x-error-message"].isprintable()
