"""Events of a webhook as server-sent events."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.event_streams import STREAM, open_stream
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import logs, settle
from tests.protocol.test_webhook_events import PATH, change_repo, page, pull_webhook

from hubgate.server.accounts.organizations import members
from hubgate.server.audit.model import SYSTEM
from hubgate.server.hub.context import Limits
from hubgate.server.resources import Hub


@pytest.fixture
def hub(engine: Engine, tmp_path: Path, limits: Limits) -> Iterator[RunningHub]:
    settings = settings_for(engine.fresh_url(), tmp_path, webhook_quota="1000000")
    with run_hub(settings, limits=limits) as started:
        yield started


@pytest.fixture
def ada(hub: RunningHub) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        yield client


def events_of(webhook: dict[str, Any]) -> str:
    return f"{PATH}/{webhook['id']}/events"


def test_stream_has_missed_and_new_events(hub: RunningHub, ada: httpx.Client) -> None:
    webhook = pull_webhook(ada, "user:ada")
    create_repo(ada, "tiny")
    settle(hub)
    with open_stream(ada, f"{events_of(webhook)}?after=0") as stream:
        assert stream.next() == page(ada, webhook)["events"]
        for number in (2, 3):
            change_repo(ada, "ada/tiny")
            settle(hub)
            assert stream.next() == page(ada, webhook, after=number - 1)["events"]
        (logged,) = logs(ada, webhook)[:1]
        assert ada.post(f"{PATH}/{webhook['id']}/replay/{logged['id']}").status_code == 200
        assert stream.next()[0]["cursor"] == 4, "replays are in the stream too"


def test_long_backlog_is_streamed_completely(hub: RunningHub, ada: httpx.Client) -> None:
    webhook = pull_webhook(ada, "user:ada")
    create_repo(ada, "tiny")
    change_repo(ada, "ada/tiny", times=30)
    settle(hub)
    (logged,) = logs(ada, webhook)[:1]
    with open_stream(ada, events_of(webhook)) as stream:
        assert [event["cursor"] for event in stream.next(31)] == list(range(1, 32))
        assert ada.post(f"{PATH}/{webhook['id']}/replay/{logged['id']}").status_code == 200
        assert stream.next()[0]["cursor"] == 32


def test_last_event_id_resumes_a_stream(hub: RunningHub, ada: httpx.Client) -> None:
    """It takes precedence over `after`: a browser that connects again repeats the address."""
    webhook = pull_webhook(ada, "user:ada")
    create_repo(ada, "tiny")
    change_repo(ada, "ada/tiny", times=2)
    settle(hub)
    resumed = {"last-event-id": "2"}
    with open_stream(ada, f"{events_of(webhook)}?after=0", **resumed) as stream:
        assert stream.next()[0]["cursor"] == 3
    with open_stream(ada, f"{events_of(webhook)}?after=latest") as stream:
        change_repo(ada, "ada/tiny")
        settle(hub)
        assert stream.next()[0]["cursor"] == 4
    bad = ada.get(events_of(webhook), headers={"accept": STREAM, "last-event-id": "x"})
    assert bad.status_code == 400


@pytest.mark.one_engine
@pytest.mark.limits(stream_comment_seconds=0.05)
def test_idle_stream_has_comments(hub: RunningHub, ada: httpx.Client) -> None:
    webhook = pull_webhook(ada, "user:ada")
    with open_stream(ada, events_of(webhook)) as stream:
        stream.wait_for_comments(4)
        create_repo(ada, "tiny")
        settle(hub)
        assert stream.next()[0]["cursor"] == 1


def test_comments_are_sent_every_fifteen_seconds() -> None:
    assert Limits().stream_comment_seconds == 15


def test_stream_ends_with_the_token(hub: RunningHub, ada: httpx.Client) -> None:
    """Nothing that happens after a token was revoked is sent to a stream that it opened (attack O44)."""
    webhook = pull_webhook(ada, "user:ada")
    create_repo(ada, "tiny")
    settle(hub)
    token = ada.headers["authorization"].removeprefix("Bearer ")
    with open_stream(ada, events_of(webhook)) as stream:
        stream.next()
        change_repo(ada, "ada/tiny")
        revoked = httpx.post(f"{hub.url}/api/credentials/revoke", json={"credentials": [token]})
        assert revoked.status_code in (200, 202, 204), revoked.text
        settle(hub)
        assert stream.rest() == []


def test_stream_of_an_organization_ends_with_the_role(hub: RunningHub, ada: httpx.Client) -> None:
    bob = create_user(hub, "bob")
    acme = create_organization(hub, "acme", create_user(hub, "olga"), ada="admin", bob="admin")
    path = "/api/organizations/acme/settings/webhooks"
    webhook = pull_webhook(ada, "org:acme", path=path)
    with api(hub, create_token(hub, bob)) as admin, open_stream(admin, f"{path}/{webhook['id']}/events") as stream:
        create_repo(ada, "acme/one")
        settle(hub)
        assert stream.next()[0]["cursor"] == 1

        async def remove(opened: Hub) -> None:
            await members.remove(opened.accounts, acme, bob, SYSTEM)

        hub.call(remove)
        create_repo(ada, "acme/two")
        settle(hub)
        assert stream.rest() == []


def test_stream_ends_with_its_webhook(ada: httpx.Client) -> None:
    webhook = pull_webhook(ada, "user:ada")
    with open_stream(ada, events_of(webhook)) as stream:
        assert ada.delete(f"{PATH}/{webhook['id']}").status_code == 200
        assert stream.rest() == []
    assert ada.get(events_of(webhook), headers={"accept": STREAM}).status_code == 404


def test_right_to_read_is_checked_for_each_streamed_event(hub: RunningHub, ada: httpx.Client) -> None:
    with api(hub, create_token(hub, create_user(hub, "bob"))) as bob:
        webhook = pull_webhook(ada, "user:bob")
        create_repo(bob, "rows")
        settle(hub)
        with open_stream(ada, events_of(webhook)) as stream:
            assert "body" in stream.next()[0]
            change_repo(bob, "bob/rows")
            create_repo(bob, "other")
            settle(hub)
            assert ["body" in event for event in stream.next(2)] == [True, True]
            assert bob.put("/api/models/bob/rows/settings", json={"private": True}).status_code == 200
        with open_stream(ada, events_of(webhook)) as stream:
            assert [event.get("skipped") for event in stream.next(3)].count("forbidden") == 2


@pytest.mark.limits(streams_per_user=2)
def test_streams_of_a_user_are_limited(hub: RunningHub, ada: httpx.Client) -> None:
    webhook = pull_webhook(ada, "user:ada")
    with api(hub, create_token(hub, create_user(hub, "bob"))) as bob:
        of_bob = pull_webhook(bob, "user:ada")
        with open_stream(ada, events_of(webhook)), open_stream(ada, events_of(webhook)):
            refused = ada.get(events_of(webhook), headers={"accept": STREAM})
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")
            with open_stream(bob, events_of(of_bob)):
                pass


@pytest.mark.one_engine
@pytest.mark.parametrize("server", ["granian", "uvicorn"])
def test_open_streams_do_not_delay_the_stop(engine: Engine, tmp_path: Path, server: str) -> None:
    settings = settings_for(engine.fresh_url(), tmp_path, server=server)
    with run_hub(settings) as hub, api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        webhook = pull_webhook(ada, "user:ada")
        with open_stream(ada, events_of(webhook)) as stream:
            started = time.monotonic()
            stopping = threading.Thread(target=hub.stop)
            stopping.start()
            assert stream.rest() == []
            stopping.join()
            # The server waits seven seconds for requests in flight.
            assert time.monotonic() - started < 6.5


def test_many_streams_of_a_webhook_share_reads(hub: RunningHub, ada: httpx.Client) -> None:
    """Each of them gets each event once."""
    webhook = pull_webhook(ada, "user:ada")
    barrier = threading.Barrier(21)

    def follow() -> list[int]:
        with open_stream(ada, events_of(webhook)) as stream:
            barrier.wait(60)
            return [event["cursor"] for event in stream.next(6)]

    with ThreadPoolExecutor(20) as pool:
        followers = [pool.submit(follow) for _ in range(20)]
        barrier.wait(60)
        create_repo(ada, "tiny")
        for _ in range(5):
            change_repo(ada, "ada/tiny")
            settle(hub)
        assert [each.result(60) for each in followers] == [[1, 2, 3, 4, 5, 6]] * 20


def count_token_checks(hub: RunningHub) -> list[str]:
    """A list that gets an entry for each time that the hub reads a token."""
    checks: list[str] = []

    async def count(opened: Any) -> None:
        few = opened.db.few

        async def counted(sql: str, *arguments: Any) -> Any:
            checks.extend(["token"] if "access_tokens" in sql else [])
            return await few(sql, *arguments)

        opened.db.few = counted

    hub.call(count)
    return checks


def test_streams_share_the_check_of_their_own_token_only(hub: RunningHub) -> None:
    """Streams end with their token, although other tokens of the user are still valid (attack O44)."""
    eve = create_user(hub, "eve")
    first, second = create_token(hub, eve, name="first"), create_token(hub, eve, name="second")
    with api(hub, first) as client, api(hub, second) as other, ExitStack() as opened:
        path = events_of(pull_webhook(client, "user:eve"))
        streams = [opened.enter_context(open_stream(client, path)) for _ in range(20)]
        remaining = opened.enter_context(open_stream(other, path))
        checks = count_token_checks(hub)
        create_repo(other, "tiny")
        settle(hub)
        assert [stream.next()[0]["cursor"] for stream in [*streams, remaining]] == [1] * 21
        assert len(checks) < 10, "one for each token, besides the requests of this test"
        revoked = httpx.post(f"{hub.url}/api/credentials/revoke", json={"credentials": [first]})
        assert revoked.status_code in (200, 202, 204), revoked.text
        change_repo(other, "eve/tiny")
        settle(hub)
        assert [stream.rest() for stream in streams] == [[]] * 20
        assert remaining.next()[0]["cursor"] == 2
