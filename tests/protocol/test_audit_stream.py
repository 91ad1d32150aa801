"""Following the audit log: sealed entries in the order of the chain, each exactly once, despite concurrent changes."""

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.audit_log import apply_retention, check_export, seal_all
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.processes import hub_process, hubgate, until
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import members
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM, EntryType
from hubgate.server.audit.record import record
from hubgate.server.audit.seal import Sealer
from hubgate.server.clock import DAY
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx

STREAM = "/api/organizations/acme/audit-log"
EXPORT, BATCHES = f"{STREAM}/export", f"{STREAM}/batches"
WRITERS = 8


def next_of(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    found = re.fullmatch(r'<(http[^>]+)>; rel="next"', response.headers["link"])
    assert found, response.headers["link"]
    return found.group(1)


def follow(client: httpx.Client, address: str) -> tuple[list[dict[str, Any]], str]:
    """All entries from here on, and the next URL."""
    found: list[dict[str, Any]] = []
    while True:
        response = client.get(address)
        address = next_of(response)
        if not response.json():
            return found, address
        found += response.json()


def messages(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["message"] for entry in entries]


def make_log(hub: RunningHub, name: str = "acme") -> tuple[User, Organization]:
    ada = create_user(hub, "ada")
    return ada, create_organization(hub, name, ada)


def write(hub: RunningHub, acme: Organization, *texts: str) -> None:
    async def unit(tx: Tx) -> None:
        for text in texts:
            hub.clock.now += 1
            await record(tx, acme.id, EntryType.ORG_ADD_USER, text, SYSTEM, hub.clock())

    hub.call(lambda opened: opened.db.write(unit))


def test_follower_resumes_where_it_stopped(hub: RunningHub) -> None:
    ada, acme = make_log(hub)
    with api(hub, create_token(hub, ada)) as client:
        first = client.get(STREAM)
        assert first.json() == [], "not sealed, not in the stream"
        place = next_of(first)
        assert next_of(client.get(place)) == place, "nothing new, the same place"
        hub.call(seal_all)
        write(hub, acme, "added bob")
        entries, place = follow(client, place)
        assert messages(entries) == ["created acme"]
        assert client.get(place).json() == []
        hub.call(seal_all)
        entries, place = follow(client, place)
        assert messages(entries) == ["added bob"]
        assert follow(client, STREAM)[0] == client.get(EXPORT).json()[::-1], "the same entries as in the export"


def test_page_links_carry_every_parameter(hub: RunningHub) -> None:
    ada, acme = make_log(hub)
    texts = [f"added user{number}" for number in range(1203)]
    write(hub, acme, *texts)
    hub.call(seal_all)
    with api(hub, create_token(hub, ada)) as client:
        response = client.get(STREAM, params={"limit": 7, "q": "added type:org.add_user"})
        assert messages(response.json()) == texts[:7]
        assert "limit=7&q=added+type%3Aorg.add_user&cursor=" in next_of(response)
        assert messages(client.get(next_of(response)).json()) == texts[7:14]
        assert len(client.get(STREAM).json()) == 100
        assert len(client.get(STREAM, params={"limit": 100_000}).json()) == 1000
        entries, _ = follow(client, f"{STREAM}?limit=300")
        assert messages(entries) == ["created acme", *texts]


def test_filtered_stream_does_not_read_old_entries_again(hub: RunningHub) -> None:
    ada, acme = make_log(hub)
    write(hub, acme, *(f"added user{number}" for number in range(30)))
    hub.call(seal_all)
    with api(hub, create_token(hub, ada)) as client:
        entries, place = follow(client, f"{STREAM}?q=created")
        assert messages(entries) == ["created acme"]
        (_, unfiltered) = follow(client, STREAM)
        assert place.partition("cursor=")[2] == unfiltered.partition("cursor=")[2]
        write(hub, acme, "added created", "added other")
        hub.call(seal_all)
        assert messages(follow(client, place)[0]) == ["added created"]


@pytest.mark.one_engine
@pytest.mark.parametrize("query", ["cursor=nonsense", "cursor=WzFd", "limit=0", "limit=x", "limit=1&limit=2"])
def test_invalid_parameters_are_rejected(hub: RunningHub, query: str) -> None:
    ada, _ = make_log(hub)
    with api(hub, create_token(hub, ada)) as client:
        assert client.get(f"{STREAM}?{query}").status_code == 400


def test_batches_can_be_followed_too(hub: RunningHub) -> None:
    ada, acme = make_log(hub)
    for number in range(5):
        write(hub, acme, f"added {number}", f"removed {number}")
        hub.call(seal_all)
    with api(hub, create_token(hub, ada)) as client:
        batches, place = follow(client, f"{BATCHES}?limit=2")
        assert [batch["entries"] for batch in batches] == [3, 2, 2, 2, 2]
        assert batches[0] == {
            "organization": acme.id,
            "seq": 1,
            "sealedAt": batches[0]["sealedAt"],
            "entries": 3,
            "hash": batches[0]["hash"],
            "ids": [entry["_id"] for entry in client.get(f"{STREAM}?limit=3").json()],
        }
        assert check_export(follow(client, STREAM)[0], batches) == 11
        assert client.get(place).json() == []


def test_chain_verifies_after_retention(hub: RunningHub) -> None:
    """Dropped entries are gone everywhere; the remaining chain verifies."""
    ada, acme = make_log(hub)
    write(hub, acme, "added old")
    hub.call(seal_all)
    hub.clock.now += 40 * DAY
    write(hub, acme, "added new")
    hub.call(seal_all)
    with api(hub, create_token(hub, ada)) as client:
        place = next_of(client.get(f"{STREAM}?limit=1"))
        hub.call(lambda opened: apply_retention(opened.db, opened.clock, days=30))
        assert messages(client.get(place).json()) == ["added new"]
        assert messages(client.get(EXPORT).json()) == ["added new"]
        batches = client.get(BATCHES).json()
        assert [("droppedAt" in batch, batch["entries"], len(batch["ids"])) for batch in batches] == [
            (True, 2, 0),
            (False, 1, 1),
        ]
        assert check_export(client.get(EXPORT).json(), batches) == 1


def test_follower_sees_entries_of_eight_writers_once(hub: RunningHub) -> None:
    """Memberships change while somebody follows: each entry is seen once, and a second reading sees the same."""
    ada, acme = make_log(hub)
    users = [create_user(hub, f"user{number}") for number in range(WRITERS)]

    async def change(opened: Hub, user: User) -> None:
        for _ in range(5):
            await members.add(opened.accounts, acme, user, Role.READ, SYSTEM)
            hub.clock.now += 1
            await members.change_role(opened.accounts, acme, user, Role.WRITE, SYSTEM)
            hub.clock.now += 1
            await members.remove(opened.accounts, acme, user, SYSTEM)
            hub.clock.now += 1

    async def everyone(opened: Hub) -> None:
        async def seal() -> None:
            while not changed.done():
                hub.clock.now += 3
                await Sealer(opened.db, opened.clock, opened.secret).step()

        changed = asyncio.gather(*(change(opened, user) for user in users))
        await asyncio.gather(changed, seal())
        await seal_all(opened)

    seen: list[dict[str, Any]] = []
    with api(hub, create_token(hub, ada)) as client, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(hub.call, everyone)
        place = f"{STREAM}?limit=10"
        while not writing.done():
            entries, place = follow(client, place)
            seen += entries
        writing.result()
        seen += follow(client, place)[0]
        again, _ = follow(client, STREAM)
        exported = client.get(EXPORT).json()
        batches, _ = follow(client, BATCHES)
    assert len(seen) == 1 + WRITERS * 15
    assert [entry["_id"] for entry in seen] == [entry["_id"] for entry in again]
    assert {entry["_id"] for entry in seen} == {entry["_id"] for entry in exported}
    assert check_export(exported, batches) == len(seen)
    for user in users:
        own = [entry["type"] for entry in seen if entry.get("data", {}).get("user") == user.name]
        assert own == ["org.add_user", "org.change_role", "org.remove_user"] * 5, "in the order in which they happened"


def test_running_hub_seals_entries(tmp_path: Path) -> None:
    """The background process of `hubgate serve` does so within about a second."""
    with hub_process(tmp_path) as hub:
        for command in (
            ["user", "create", "ada", "--email", "ada@example.org", "--verified"],
            ["org", "create", "acme", "--owner", "ada"],
        ):
            done = hubgate("admin", *command, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
        made = hubgate("admin", "token", "create", "ada", "--role", "read", "--json", cwd=tmp_path)
        with hub.client() as client:
            client.headers["authorization"] = f"Bearer {json.loads(made.stdout)['token']}"
            until(lambda: client.get(STREAM).json() != [])
            assert messages(client.get(STREAM).json()) == ["created acme"]
        assert hub.stop() == 0
    said = hubgate("doctor", cwd=tmp_path)
    assert "✓ ok   audit log: 1 organization: 1 entry in 1 batch, unchanged; 0 entries not sealed yet" in said.stdout
