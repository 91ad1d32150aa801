"""The audit log as admins read it: the export, its filters and its page."""

import html
import re
from typing import Any

import httpx
import msgspec
import pytest
from tests.bed.audit_log import check_export, seal_all
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import store
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import members, settings
from hubgate.server.accounts.roles import Role
from hubgate.server.accounts.tokens import personal
from hubgate.server.audit.model import SYSTEM, Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.clock import SECOND
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx
from hubgate.server.web.audit_entries import AuditEntry

EXPORT = "/api/organizations/acme/audit-log/export"
BATCHES = "/api/organizations/acme/audit-log/batches"
PAGE = "/organizations/acme/settings/audit-log"


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def acme(hub: RunningHub, ada: User) -> Organization:
    organization = create_organization(hub, "acme", ada)
    hub.clock.advance(1)
    return organization


def act(hub: RunningHub, acme: Organization, *messages: str, **actor: Any) -> None:
    """One entry each, a second apart."""
    who = Actor(**{"name": "ada", "ip": "192.0.2.7", **actor})

    begin = hub.clock()

    async def unit(tx: Tx) -> None:
        for number, message in enumerate(messages):
            kind = EntryType.ORG_REMOVE_USER if message.startswith("removed") else EntryType.ORG_ADD_USER
            await record(tx, acme.id, kind, message, who, begin + number * SECOND, {"n": 1})

    hub.call(lambda opened: opened.db.write_long(unit))
    hub.clock.advance(len(messages))


def exported(client: httpx.Client, q: str = "") -> list[dict[str, Any]]:
    response = client.get(EXPORT, params={"q": q} if q else {})
    assert response.status_code == 200, response.text
    entries: list[dict[str, Any]] = response.json()
    assert msgspec.convert(entries, list[AuditEntry]), "shaped as documented"
    return entries


def run_sql(hub: RunningHub, sql: str, **values: Any) -> None:
    hub.call(lambda opened: opened.db.write(lambda tx: tx.exec(sql, values)))


@pytest.mark.one_engine
def test_entry_has_exactly_the_documented_fields(hub: RunningHub, ada: User, acme: Organization) -> None:
    create_user(hub, "bob")
    text = create_token(hub, ada)
    hub.call(lambda opened: add_bob(opened, acme))
    hub.clock.now += 1_000_042
    with api(hub, text) as client:
        changed = client.put("/api/organizations/acme/members/bob/role", json={"role": "write"})
        assert changed.status_code == 200, changed.text
        newest, *_, oldest = exported(client)
    bob_id = newest["data"]["userId"]
    token = newest["token"]
    assert newest == {
        "_id": newest["_id"],
        "createdAt": "2026-09-21T14:13:22.000042Z",
        "type": "org.change_role",
        "message": "changed the role of bob from read to write",
        "author": {"_id": ada.id, "user": "ada", "avatarUrl": f"/avatars/{ada.id}.svg", "type": "user"},
        "data": {"user": "bob", "userId": bob_id, "from": "read", "to": "write"},
        "ip": "127.0.0.1",
        "userAgent": client.headers["user-agent"],
        "token": {
            "type": "access_token",
            "id": token["id"],
            "role": "write",
            "last4": text[-4:],
            "deleted": False,
        },
    }
    assert re.fullmatch("[0-9a-f]{24}", newest["_id"])
    nobody = "0" * 24
    assert oldest["author"] == {
        "_id": nobody,
        "user": "system",
        "avatarUrl": f"/avatars/{nobody}.svg",
        "type": "system",
    }
    assert (oldest["type"], oldest["data"]) == ("org.create", {"name": "acme"})
    assert {"ip", "token", "userAgent", "oauth", "location"}.isdisjoint(oldest)


async def add_bob(opened: Hub, acme: Organization) -> None:
    bob = await store.user_by_name(opened.db, "bob")
    assert bob is not None
    await members.add(opened.accounts, acme, bob, Role.READ, SYSTEM)


@pytest.mark.one_engine
def test_entry_names_the_app(hub: RunningHub, ada: User, acme: Organization) -> None:
    act(hub, acme, "added x", user_id=ada.id, oauth={"clientId": "f00", "name": "Notebook"})
    with api(hub, create_token(hub, ada, "read")) as client:
        assert exported(client)[0]["oauth"] == {"clientId": "f00", "name": "Notebook"}


def test_entry_marks_deleted_accounts(hub: RunningHub, ada: User, acme: Organization) -> None:
    bob = create_user(hub, "bob")

    async def work(opened: Hub) -> None:
        _, token = await personal.create(opened.accounts, bob, "laptop", personal.TokenRole.WRITE, "::1")
        who = Actor("bob", bob.id, token={"type": "access_token", "id": token.id})
        await opened.db.write(lambda tx: record(tx, acme.id, EntryType.ORG_ADD_USER, "added x", who, opened.clock()))

    hub.call(work)
    with api(hub, create_token(hub, ada)) as client:
        before = exported(client)[0]
        assert before["token"]["deleted"] is False
        assert "deleted" not in before["author"]
        run_sql(hub, "DELETE FROM access_tokens WHERE user_id = :id", id=bob.id)
        assert exported(client)[0]["token"]["deleted"] is True
        run_sql(hub, "DELETE FROM users WHERE id = :id", id=bob.id)
        after = exported(client)[0]
    assert after["author"] == {**before["author"], "deleted": True}
    assert after["author"]["user"] == "bob"


def test_export_downloads_everything_newest_first(hub: RunningHub, ada: User, acme: Organization) -> None:
    act(hub, acme, *(f"added user{number}" for number in range(1203)))
    with api(hub, create_token(hub, ada)) as client:
        response = client.get(EXPORT)
        assert client.head(EXPORT).status_code == 200
    assert response.headers["content-disposition"] == 'attachment; filename="acme-audit-log-2026-09-21.json"'
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    messages = [entry["message"] for entry in response.json()]
    assert messages == [*(f"added user{number}" for number in reversed(range(1203))), "created acme"]


def test_export_is_limited_to_the_newest_hundred_thousand_entries(
    hub: RunningHub, ada: User, acme: Organization
) -> None:
    run_sql(
        hub,
        """
        WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n <= 100000)
        INSERT INTO audit_entries (id, org_id, created_at, type, message, author_name)
        SELECT CAST(n AS text), CAST(:org_id AS text), n, 'org.add_user', 'added', 'x' FROM numbers
        """,
        org_id=acme.id,
    )
    with api(hub, create_token(hub, ada)) as client:
        entries = client.get(EXPORT).json()
    assert len(entries) == 100_000
    assert [entries[0]["message"], entries[1]["_id"], entries[-1]["_id"]] == ["created acme", "100001", "3"]


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("author:ada", ["removed Émile", "added bob_x"]),
        ("author:ADA type:org.remove_user", ["removed Émile"]),
        ("author:ada author:eve", ["removed carl", "removed Émile", "added bob_x"]),
        ("author:ad", []),
        ("ip:2001:db8::1", ["removed carl"]),
        ("type:org.create", ["created acme"]),
        ("type:org", []),
        ("REMOVED", ["removed carl", "removed Émile"]),
        ("removed car", ["removed carl"]),
        ("Émile", ["removed Émile"]),
        ("bob_x", ["added bob_x"]),
        ("b_b", []),
        ("%", []),
        ("author:ada removed ip:192.0.2.7 type:org.remove_user", ["removed Émile"]),
        ("nothing", []),
    ],
)
def test_filters_select_entries(hub: RunningHub, ada: User, acme: Organization, q: str, found: list[str]) -> None:
    act(hub, acme, "added bob_x", "removed Émile", user_id=ada.id)
    act(hub, acme, "removed carl", name="eve", ip="2001:db8::1")
    with api(hub, create_token(hub, ada)) as client:
        assert [entry["message"] for entry in client.get(EXPORT, params={"q": q}).json()] == found
        if q == "author:ada":
            assert client.get(EXPORT, params={"q": f"author:{ada.id}"}).json()[0]["message"] == found[0]


@pytest.mark.one_engine
@pytest.mark.parametrize("q", ["author:", "x" * 501, "a b c d e f g h i"])
def test_invalid_filter_is_rejected(hub: RunningHub, ada: User, acme: Organization, q: str) -> None:
    with api(hub, create_token(hub, ada)) as client, browser_of(hub, ada) as browser:
        assert client.get(EXPORT, params={"q": q}).status_code == 422
        page = browser.get(PAGE, params={"q": q})
        assert page.status_code == 422
        assert 'aria-invalid="true"' in page.text
        assert "Error: Audit log" in page.text


@pytest.mark.one_engine
@pytest.mark.parametrize("address", [EXPORT, BATCHES, "/api/organizations/acme/audit-log"])
def test_export_is_for_admins_only(hub: RunningHub, ada: User, acme: Organization, address: str) -> None:
    bob, eve = create_user(hub, "bob"), create_user(hub, "eve", operator=True)
    hub.call(lambda opened: add_bob(opened, acme))
    with api(hub) as nobody, browser_of(hub, ada) as browser:
        assert nobody.get(address).status_code == 401
        assert browser.get(address).status_code == 401, "a session is no token"
    for user, role, status in [(bob, "write", 403), (eve, "write", 403), (ada, "read", 200)]:
        with api(hub, create_token(hub, user, role)) as client:
            assert client.get(address).status_code == status
            assert client.get(address.replace("acme", "nobody")).status_code == 404
            assert client.post(address).status_code == 405


@pytest.mark.one_engine
def test_export_can_be_verified_independently(hub: RunningHub, ada: User, acme: Organization) -> None:
    act(hub, acme, *(f'added "user{number}" é\u2028' for number in range(700)), user_id=ada.id, user_agent="tests")
    hub.call(seal_all)
    act(hub, acme, "removed x", token={"type": "access_token", "id": "e" * 24})
    hub.call(seal_all)
    act(hub, acme, "added not sealed yet")
    with api(hub, create_token(hub, ada)) as client:
        entries, batches = exported(client), client.get(BATCHES).json()
    assert [batch["entries"] for batch in batches] == [500, 201, 1]
    assert check_export(entries, batches) == 702
    for change in ({"message": "x"}, {"ip": "::2"}, {"author": {**entries[5]["author"], "user": "eve"}}):
        forged = [{**entry, **change} if entry is entries[5] else entry for entry in entries]
        with pytest.raises(AssertionError, match="batch 2 was changed"):
            check_export(forged, batches)


# The page -----------------------------------------------------------------------------------------------------------


def sentences(page: httpx.Response) -> list[str]:
    assert page.status_code == 200, page.status_code
    return [html.unescape(text) for text in re.findall(r"<td><bdi>(.*?)</bdi><br>", page.text)]


def link(page: httpx.Response, text: str) -> str:
    found = re.search(rf'<a [^>]*href="([^"]+)"[^>]*>{text}</a>', page.text)
    assert found, text
    return html.unescape(found.group(1))


def test_page_lists_entries_in_pages(hub: RunningHub, ada: User, acme: Organization) -> None:
    act(hub, acme, *(f"added user{number}" for number in range(120)))
    every = [*(f"added user{number}" for number in reversed(range(120))), "created acme"]
    with browser_of(hub, ada) as browser:
        first = browser.get(PAGE)
        assert "121 entries" in first.text
        assert "Newer" not in first.text
        second = browser.get(link(first, "Older"))
        third = browser.get(link(second, "Older"))
        assert sentences(first) + sentences(second) + sentences(third) == every
        assert ">Older<" not in third.text
        assert sentences(browser.get(link(third, "Newer"))) == sentences(second)
        # Entries recorded since then are at the top of the first page.
        act(hub, acme, "added late")
        again = browser.get(link(second, "Newer"))
        assert sentences(again) == sentences(first)
        top = browser.get(link(again, "Newer"))
        assert sentences(top) == ["added late", *every[:49]]
        assert ">Newer<" not in top.text


@pytest.mark.one_engine
def test_page_filters_with_chips(hub: RunningHub, ada: User, acme: Organization) -> None:
    act(hub, acme, "added bob", "removed bob", user_id=ada.id)
    act(hub, acme, "added carl", name="eve")
    with browser_of(hub, ada) as browser:
        page = browser.get(PAGE, params={"q": "author:ada removed"})
        assert sentences(page) == ["removed bob"]
        assert "1 entry" in page.text
        chips = re.findall(r'class="chip" href="([^"]+)"', page.text)
        assert [sentences(browser.get(html.unescape(chip))) for chip in chips] == [
            ["removed bob"],
            ["removed bob", "added bob"],
        ]
        assert sentences(browser.get(link(page, "<bdi>ada</bdi>"))) == ["removed bob", "added bob"]
        nothing = browser.get(PAGE, params={"q": "nonsense"})
        assert "Nothing matches." in nothing.text
        assert link(nothing, "Clear") == PAGE


@pytest.mark.one_engine
def test_page_downloads_the_same_as_the_api(hub: RunningHub, ada: User, acme: Organization) -> None:
    act(hub, acme, "added bob", "removed bob")
    with browser_of(hub, ada) as browser, api(hub, create_token(hub, ada)) as client:
        page = browser.get(PAGE, params={"q": "type:org.add_user"})
        download = browser.get(link(page, "Export"))
        same = client.get(EXPORT, params={"q": "type:org.add_user"})
    assert download.content == same.content
    assert download.headers["content-disposition"] == same.headers["content-disposition"]
    assert [entry["message"] for entry in download.json()] == ["added bob"]


@pytest.mark.one_engine
@pytest.mark.parametrize("address", [PAGE, f"{PAGE}/export"])
def test_page_is_for_admins_only(hub: RunningHub, ada: User, acme: Organization, address: str) -> None:
    bob = create_user(hub, "bob")
    hub.call(lambda opened: add_bob(opened, acme))
    with browser_of(hub) as nobody, browser_of(hub, bob) as member, browser_of(hub, ada) as admin:
        refused = nobody.get(address)
        assert refused.status_code == 303
        assert refused.headers["location"].startswith("/login?next=")
        assert member.get(address).status_code == 403
        assert admin.get(address).status_code == 200
        assert admin.get(address.replace("acme", "nobody")).status_code == 404


@pytest.mark.one_engine
def test_badge_shows_whether_the_chain_is_intact(hub: RunningHub, ada: User, acme: Organization) -> None:
    with browser_of(hub, ada) as browser:
        assert "Not sealed yet" in browser.get(PAGE).text
        hub.call(seal_all)
        act(hub, acme, "added bob")
        hub.call(seal_all)
        page = browser.get(PAGE).text
        assert re.search("✓</span> Sealed up to <time [^>]*>2026-09-21 14:13 UTC", page)
        assert "Broken" not in page
        run_sql(hub, "UPDATE audit_entries SET message = 'created evil' WHERE type = 'org.create'")
        page = browser.get(PAGE).text
        assert "✕</span> Broken" in page
        assert "hubgate doctor" in page
        run_sql(hub, "UPDATE audit_entries SET message = 'created acme' WHERE type = 'org.create'")
        assert "Sealed up to" in browser.get(PAGE).text
        run_sql(hub, "UPDATE audit_heads SET seq = 1")
        assert "✕</span> Broken" in browser.get(PAGE).text


@pytest.mark.one_engine
def test_foreign_text_is_escaped(hub: RunningHub, ada: User, acme: Organization) -> None:
    act(hub, acme, 'added <script>alert(1)</script>\u202e"evil', name="<b>x</b>", oauth={"clientId": "<i>c</i>"})
    with browser_of(hub, ada) as browser:
        page = browser.get(PAGE)
    assert "<script>alert" not in page.text
    assert "\u202e" not in page.text
    assert sentences(page)[0] == 'added <script>alert(1)</script>"evil'
    assert "<b>x" not in page.text
    assert "&lt;i&gt;c&lt;/i&gt;" in page.text


@pytest.mark.one_engine
def test_tampered_entry_does_not_break_the_page(hub: RunningHub, ada: User, acme: Organization) -> None:
    act(hub, acme, "added bob", token={"type": "access_token", "id": "e" * 24})
    run_sql(hub, "UPDATE audit_entries SET data = 'nonsense', token = '[' WHERE type = 'org.add_user'")
    with browser_of(hub, ada) as browser, api(hub, create_token(hub, ada)) as client:
        assert client.get(EXPORT).json()[0]["data"] == {"unreadable": "nonsense"}
        assert sentences(browser.get(PAGE))[0] == "added bob"


@pytest.mark.one_engine
def test_log_of_a_renamed_organization_is_found_by_both_names(hub: RunningHub, ada: User, acme: Organization) -> None:
    hub.clock.advance(24 * 3600)
    hub.call(lambda opened: settings.rename(opened.accounts, acme, "apex", SYSTEM))
    with api(hub, create_token(hub, ada)) as client:
        moved = client.get(EXPORT, params={"q": "type:org.rename"})
        assert moved.status_code == 307
        assert client.get(moved.headers["location"]).json()[0]["data"] == {"from": "acme", "to": "apex"}


def test_export_is_a_snapshot_while_entries_are_added(hub: RunningHub, ada: User, acme: Organization) -> None:
    """It contains each entry from its start once, no matter what is added."""

    async def many(tx: Tx) -> None:
        for number in range(6000):
            at = hub.clock() + number
            await record(tx, acme.id, EntryType.ORG_ADD_USER, f"added {number}", SYSTEM, at, {"filler": "x" * 900})

    hub.call(lambda opened: opened.db.write_long(many))
    hub.clock.advance(10)
    with api(hub, create_token(hub, ada)) as client, client.stream("GET", EXPORT) as response:
        parts = response.iter_raw()
        text = next(parts)
        act(hub, acme, "added late")
        text += b"".join(parts)
    messages = [entry["message"] for entry in msgspec.json.decode(text)]
    assert messages == [*(f"added {number}" for number in reversed(range(6000))), "created acme"]
