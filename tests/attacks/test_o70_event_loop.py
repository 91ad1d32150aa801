"""O70: a small request does not occupy the event loop, which serves all other requests.

Hardly anything is timed: the functions called on the loop are counted.
"""

import time

import httpx
import pytest
from tests.bed.call_counts import calls_on_loop
from tests.bed.disconnecting_clients import OTHER, client_from
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.resources import Hub

PARAMETERS = 900


@pytest.mark.one_engine
def test_list_reads_each_parameter_a_few_times(hub: RunningHub) -> None:
    """Comparing each parameter with each other one would be quadratic."""
    query = "&".join(f"p{number}" for number in range(PARAMETERS))
    with client_from(hub, OTHER) as client, calls_on_loop(hub) as calls:
        assert client.get(f"/api/models?{query}&limit=2").status_code == 200
    assert calls["last"] < 20


VALUES = 50_000


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("text", "status"), [(r"\\u0000", 200), (r"\\\\u0000", 200), (r"\u0000", 422), (r"\\\u0000", 422)]
)
def test_nul_is_found_without_walking_the_body(hub: RunningHub, text: str, status: int) -> None:
    many = ",".join(['""'] * VALUES)
    body = f'{{"content": "{text}", "more": [{many}]}}'
    with client_from(hub, OTHER) as client, calls_on_loop(hub) as calls:
        answer = client.post("/api/validate-yaml", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert calls.total() < VALUES // 10


@pytest.mark.one_engine
def test_invalid_json_with_a_nul_is_rejected(hub: RunningHub) -> None:
    with client_from(hub, OTHER) as client:
        answer = client.post("/api/validate-yaml", content=rb'{"content": "\u0000"', headers=_JSON)
    assert answer.status_code == 400


_JSON = {"content-type": "application/json"}


@pytest.mark.one_engine
def test_long_cookie_header_is_read_in_one_pass(hub: RunningHub) -> None:
    pairs = 10_000
    with client_from(hub, OTHER) as client:
        # Templates are compiled once.
        client.get("/login")
        with calls_on_loop(hub) as calls:
            page = client.get("/login", headers={"cookie": "a;" * pairs})
    assert page.status_code == httpx.codes.OK
    assert calls.total() < pairs


@pytest.mark.one_engine
def test_form_with_many_fields_before_a_file_is_read_in_one_pass(hub: RunningHub) -> None:
    """Removing each field from the beginning of the body would copy gigabytes; without a session, too."""

    async def seconds_of_loop(_: Hub) -> float:
        return time.thread_time()

    disposition = b'--b\r\nContent-Disposition: form-data; name="a"'
    fields, file = (disposition + b"\r\n\r\n\r\n") * 999, disposition + b'; filename="x"\r\n\r\n' + b"x" * 8_000_000
    headers = {"content-type": "multipart/form-data; boundary=b", "cookie": "a=b"}
    with client_from(hub, OTHER) as client:
        before = hub.call(seconds_of_loop)
        answer = client.post("/settings/picture", content=fields + file + b"\r\n--b--\r\n", headers=headers)
        assert answer.status_code == 403
        # CPU time, which does not depend on other processes. With a copy for each field, it is several seconds.
        assert hub.call(seconds_of_loop) - before < 1


def test_documentation_is_searched_in_a_thread(sqlite_hub: RunningHub) -> None:
    """The first search renders all pages."""
    with sqlite_hub.client() as visitor, calls_on_loop(sqlite_hub) as calls:
        assert "doc-results" in visitor.get("/docs/search?q=webhook").text
        assert calls["_score"] == 0


def test_slow_rules_of_attributes_are_read_in_a_thread(sqlite_hub: RunningHub) -> None:
    """A set of characters takes as long to read as hundreds of other characters of a rule."""
    rules = b"[[:print:]]*" * 300 + b" filter=lfs\n"
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        with calls_on_loop(sqlite_hub) as calls:
            create_commit(ada, "ada/tiny", {".gitattributes": rules, "a": b"a"})
    assert calls["_bracket"] == 0
