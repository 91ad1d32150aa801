"""O70: work that anyone may request is bounded, shared fairly, and cancelled when its client disconnects.

Callers are distinguished by address: each uses its own loopback address. Nothing is timed: the tests count how much
work of disconnected clients is completed, and how many of one caller's requests are answered before another's.
"""

import asyncio
import base64
import contextlib
import json
import threading
from collections.abc import Callable, Iterator

import pytest
from tests.bed.disconnecting_clients import (
    OTHER,
    client_from,
    count_answered,
    send_requests,
    slow_yaml,
    statuses,
    statuses_after_disconnect,
)
from tests.bed.git import linear_history, push_import, repo_url
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import until
from tests.bed.repos import create_commit, create_repo, head_of
from tests.bed.running_hub import RunningHub

from hubgate.server.edge.edge import CLIENT_LEFT
from hubgate.server.hub.git.threads import TEXTS, in_text_thread
from hubgate.server.jobs.caller import JobCaller, current_job_caller
from hubgate.server.resources import Hub

COMMITS, FILES = 20_000, 20_000
CLIENTS = 24
HISTORY = "/api/models/ada/long/commits/main"


@pytest.fixture(scope="module")
def long(shared_hub: RunningHub, tmp_path_factory: pytest.TempPathFactory) -> RunningHub:
    """Ada's repo `long`, with many commits and many files, and `other` with a few small ones."""
    hub = shared_hub
    token = create_token(hub, create_user(hub, "ada"))
    with api(hub, token) as ada:
        create_repo(ada, "long")
        create_repo(ada, "other")
        create_commit(ada, "ada/other", {f"{number}.txt": b"%d" % number for number in range(20)})
    push_import(
        tmp_path_factory.mktemp("imported"), linear_history(COMMITS, FILES), repo_url(hub.url, "ada/long", token)
    )
    return hub


SLOW = {
    # Deep, but still allowed.
    "127.0.0.11": [f"{HISTORY}?limit=1000&p=19"] * CLIENTS,
    "127.0.0.12": ["/api/models/ada/long?blobs=true"] * CLIENTS,
    "127.0.0.13": [f"/api/models/ada/long/tree/main?expand=true&limit={20 + number}" for number in range(CLIENTS)],
}


def test_o70_work_is_cancelled_when_its_client_disconnects(long: RunningHub) -> None:
    for source, targets in SLOW.items():
        ended = statuses_after_disconnect(long, targets, source=source)
        assert ended.count(CLIENT_LEFT) == CLIENTS - ended.count(200) >= CLIENTS // 2, targets[0]
    assert '"level":"error"' not in long.log
    assert '"level":"warning"' not in long.log


def test_o70_text_is_not_parsed_for_disconnected_clients(sqlite_hub: RunningHub) -> None:
    assert (
        statuses_after_disconnect(sqlite_hub, ["/api/validate-yaml"] * CLIENTS, slow_yaml()).count(200) <= CLIENTS // 2
    )


def test_o70_one_callers_requests_do_not_delay_others(long: RunningHub) -> None:
    """There are more requests than threads: the other's file is read before most of them."""
    with client_from(long, OTHER) as other:
        assert other.get("/healthz").status_code == 200
        with send_requests(long, ["/api/models/ada/long?blobs=true"] * CLIENTS) as greedy:
            for number in range(5):
                assert other.get(f"/ada/other/resolve/main/{number}.txt").text == str(number)
            assert count_answered(greedy) < 12


def test_o70_parsing_is_shared_fairly_among_callers(sqlite_hub: RunningHub) -> None:
    """All requests wait until the threads are free, so the order depends on nothing but the pool."""
    path, short = "/api/validate-yaml", json.dumps({"content": "---\nlicense: mit\n---\n"}).encode()
    with (
        text_threads_occupied(sqlite_hub) as release,
        send_requests(sqlite_hub, [path] * CLIENTS, slow_yaml()),
    ):
        until(lambda: TEXTS.metrics.queued == CLIENTS)
        with send_requests(sqlite_hub, [path], short, OTHER) as connections:
            until(lambda: TEXTS.metrics.queued == CLIENTS + 1)
            release()
            assert b'{"errors":[],"warnings":[]}' in connections[0].recv(4096)
            until(lambda: statuses(sqlite_hub, OTHER))
    answered = [line for line in sqlite_hub.log.splitlines() if f'"{path}"' in line]
    assert [f'"{OTHER}"' in line for line in answered].index(True) <= 4


@contextlib.contextmanager
def text_threads_occupied(hub: RunningHub) -> Iterator[Callable[[], None]]:
    """Occupy the threads that parse text, as two other callers, until the function is called."""
    released = threading.Event()

    async def occupy(_: Hub) -> list["asyncio.Task[bool]"]:
        tasks = []
        for caller in ("first", "second"):
            current_job_caller.set(JobCaller(caller))
            tasks.append(asyncio.create_task(in_text_thread(released.wait)))
        return tasks

    tasks = hub.call(occupy)
    try:
        until(lambda: TEXTS.metrics.running == len(tasks))
        yield released.set
    finally:
        released.set()


def test_o70_history_is_paged_by_cursor_and_page_numbers_end_at_100(long: RunningHub) -> None:
    with client_from(long, OTHER) as client:
        assert client.get(f"{HISTORY}?p=100&limit=1").status_code == 200
        for query in ("p=101", "p=190&limit=1000", "limit=1&p=999999999"):
            refused = client.get(f"{HISTORY}?{query}")
            assert refused.status_code == 400, query
        assert "Link" in refused.json()["error"]
        answer, seen = client.get(f"{HISTORY}?limit=1000"), list[str]()
        while True:
            assert answer.headers["x-total-count"] == str(COMMITS)
            seen += [commit["title"] for commit in answer.json()]
            if "next" not in answer.links:
                break
            assert "p=" not in answer.links["next"]["url"]
            answer = client.get(answer.links["next"]["url"])
        assert seen == [f"commit {number}" for number in reversed(range(COMMITS))]
        # A deep page by number is found by the git program, and continues by cursor.
        deep = client.get(f"{HISTORY}?limit=1000&p=19")
        assert [commit["title"] for commit in deep.json()][:1] == ["commit 999"]
        assert client.get(f"{HISTORY}?limit=1000&p=20").json() == []


def test_o70_forged_cursors_are_rejected(long: RunningHub) -> None:
    def cursor(*parts: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()

    with client_from(long, OTHER) as client:
        head, elsewhere = head_of(client, "ada/long"), head_of(client, "ada/other")
        assert client.get(f"{HISTORY}?limit=1&cursor={cursor(5, head, '', 0)}").json()[0]["id"] == head
        for bad in (
            "x",
            cursor(5, head),
            cursor(5, "", "", 0),
            cursor(5, head[:39], "", 0),
            cursor(5, "g" * 40, "", 0),
            cursor(5, "0" * 40, "", 0),
            cursor(5, elsewhere, "", 0),
            cursor(5, elsewhere, "", 50_000),
            cursor(5, head * 25, "", 0),
            cursor(5, head, head * 25, 0),
            cursor(5, head, "", -1),
            cursor(5, head, "", 100_001),
            cursor(0, head, "", 0),
            cursor(2**60, head, "", 0),
            cursor(5, f"--output=x{head[:30]}", "", 50_000),
        ):
            assert client.get(f"{HISTORY}?cursor={bad}").status_code == 400, bad
