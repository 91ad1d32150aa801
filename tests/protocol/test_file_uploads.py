"""Uploading files in the browser: any number and size, stored as existing clients store them, in bounded memory."""

import base64
import hashlib
import socket
from collections.abc import Awaitable, Callable, Iterator
from html import unescape
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import Page, api, browser_of, create_organization, create_token, create_user
from tests.bed.processes import until
from tests.bed.repos import create_commit, create_repo, head_of, paths_in, send_commit
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.small_disk import small_disk

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.organizations import members
from hubgate.server.accounts.roles import Role
from hubgate.server.accounts.sessions import store as session_store
from hubgate.server.audit.model import SYSTEM
from hubgate.server.hub.quotas import store as quota_store
from hubgate.server.resources import Hub

AT = "/acme/tiny"
FORM = {"content-type": "multipart/form-data; boundary=b"}
Files = list[tuple[str, tuple[str, bytes]]]


@pytest.fixture
def ada(hub: RunningHub) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """The browser and the API client of ada, who may write the repo of acme."""
    user, admin = create_user(hub, "ada"), create_user(hub, "boss")
    create_organization(hub, "acme", admin, ada="write")
    with browser_of(hub, user) as browser, api(hub, create_token(hub, user)) as client:
        create_repo(client, "acme/tiny")
        create_commit(client, "acme/tiny", {"a.txt": b"old\n"})
        yield browser, client


def fill(browser: httpx.Client, files: Files, folder: str = "", **fields: str) -> Callable[[], httpx.Response]:
    address = f"{AT}/upload/main" + (f"/{folder}" if folder else "")
    hidden = Page(browser.get(address)).hidden(address)
    return lambda: browser.post(address, data={**hidden, **fields}, files=files)


def send(browser: httpx.Client, files: Files, folder: str = "", **fields: str) -> httpx.Response:
    return fill(browser, files, folder, **fields)()


def file(name: str, content: bytes = b"x") -> tuple[str, tuple[str, bytes]]:
    return "files", (name, content)


def incoming(hub: RunningHub) -> list[Path]:
    folder = hub.settings.data_dir / "lfs/incoming"
    return list(folder.iterdir()) if folder.exists() else []


def test_files_are_stored_as_by_existing_clients(hub: RunningHub, ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    large = b"line\n" * (3 * 1024 * 1024)
    files = {
        "a.txt": b"new\n",
        "empty": b"",
        'sub/é "quoted".txt': "é\r\n".encode(),
        "tiny.bin": b"\0",
        "named.safetensors": b"text",
        "large.txt": large,
    }
    sent = send(browser, [file(*item) for item in files.items()], "data", description="All\r\nof them")
    assert sent.headers["location"] == f"{AT}/tree/main/data"
    assert paths_in(client, "acme/tiny") == {"a.txt", *(f"data/{path}" for path in files)}
    for path, content in files.items():
        found = client.get(f"{AT}/resolve/main/data/{path}", follow_redirects=True)
        assert found.content == content, path
    tree = client.get("/api/models/acme/tiny/tree/main/data?recursive=true").json()
    stored = {entry["path"].removeprefix("data/"): entry["lfs"]["oid"] for entry in tree if "lfs" in entry}
    by_name = {path: hashlib.sha256(files[path]).hexdigest() for path in ("tiny.bin", "named.safetensors", "large.txt")}
    assert stored == by_name
    # Clients upload the same files as large ones.
    candidates = [
        {"path": f"data/{path}", "size": len(content), "sample": base64.b64encode(content[:512]).decode()}
        for path, content in files.items()
    ]
    answers = client.post("/api/models/acme/tiny/preupload/main", json={"files": candidates}).json()["files"]
    assert {one["path"].removeprefix("data/") for one in answers if one["uploadMode"] == "lfs"} == set(by_name)
    (commit, *_) = client.get("/api/models/acme/tiny/commits/main").json()
    assert (commit["title"], commit["message"]) == ("Upload 6 files", "All\nof them")
    assert incoming(hub) == []


@pytest.mark.one_engine
def test_existing_file_is_replaced_unless_it_changed_since(ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    assert send(browser, [file("a.txt", b"mine")], summary="Replace it").status_code == 303
    assert client.get(f"{AT}/raw/main/a.txt").content == b"mine"
    late = fill(browser, [file("a.txt", b"late")])
    create_commit(client, "acme/tiny", {"a.txt": b"theirs"})
    conflict = late()
    assert conflict.status_code == 409
    assert "Changed by another commit since you opened this page: a.txt." in conflict.text
    assert "<ins>+theirs\n</ins>" in conflict.text
    assert client.get(f"{AT}/raw/main/a.txt").content == b"theirs"
    seen = Page(conflict).hidden(f"{AT}/upload/main")
    again = browser.post(f"{AT}/upload/main", data=seen, files=[file("a.txt", b"late")])
    assert again.status_code == 303


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("files", "status", "message"),
    [
        ([file("../x")], 422, "cannot contain . or .."),
        ([file("/etc/passwd")], 422, "not a relative path"),
        ([file(".git/config")], 422, "cannot go through .git"),
        ([file("a\nb")], 422, "control characters"),
        ([file("C:\\x")], 422, "not a backslash"),
        ([file("x"), file("x")], 422, "x was sent twice."),
        ([file("x"), file("x/y")], 422, "more than once, or as a file and as a folder"),
        ([file("a.txt/b")], 422, "a.txt is a file."),
        ([("other", ("x", b"x"))], 400, "Unknown field of files: other."),
        ([file("", b"")], 422, "Choose a file."),
    ],
)
def test_invalid_upload_is_rejected_as_a_whole(
    hub: RunningHub, ada: tuple[httpx.Client, httpx.Client], files: Files, status: int, message: str
) -> None:
    browser, client = ada
    before = head_of(client, "acme/tiny")
    rejected = send(browser, [file("good.txt"), *files] if len(files) == 1 and files[0][1][0] else files)
    assert rejected.status_code == status, rejected.text
    assert message in unescape(rejected.text)
    assert head_of(client, "acme/tiny") == before
    assert incoming(hub) == []


def test_large_file_is_rejected_and_the_answer_is_readable(sqlite_template: Path, tmp_path: Path) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(settings_for(url, tmp_path, regular_upload_max="2000000")) as hub:
        user = create_user(hub, "ada")
        with browser_of(hub, user) as browser, api(hub, create_token(hub, user)) as client:
            create_repo(client, "tiny")
            address = "/ada/tiny/upload/main"
            page = browser.get(address)
            assert "Up to 2.0 MB each." in page.text
            files = [file("small.txt"), file("big.bin", b"x" * 20_000_000), file("last.txt")]
            rejected = browser.post(address, data=Page(page).hidden(address), files=files)
            assert rejected.status_code == 413
            assert "big.bin is too large" in rejected.text
            assert paths_in(client, "ada/tiny") == set()
            assert incoming(hub) == []


@pytest.mark.one_engine
def test_upload_beyond_the_quota_is_rejected(hub: RunningHub, ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada

    async def limit(opened: Hub) -> None:
        acme = await account_store.organization_by_name(opened.db, "acme")
        assert acme is not None
        await opened.db.write(lambda tx: quota_store.set_exception(tx, "org", acme.id, 1000))

    hub.call(limit)
    rejected = send(browser, [file("w.bin", b"\0" * 2000)])
    assert rejected.status_code == 403
    assert "acme may store 1,000 bytes of large files" in rejected.text
    assert paths_in(client, "acme/tiny") == {"a.txt"}
    assert incoming(hub) == []


@pytest.mark.one_engine
@pytest.mark.parametrize(("lost", "status"), [("role", 403), ("session", 401)])
def test_permission_lost_during_the_upload_rejects_it(
    hub: RunningHub, ada: tuple[httpx.Client, httpx.Client], lost: str, status: int
) -> None:
    """As for a commit over the API: role and session are read again when the files have been received (attack O44)."""
    browser, client = ada
    hidden = Page(browser.get(f"{AT}/upload/main")).hidden(f"{AT}/upload/main")

    async def demote(opened: Hub) -> None:
        acme = await account_store.organization_by_name(opened.db, "acme")
        user = await account_store.user_by_name(opened.db, "ada")
        assert acme is not None
        assert user is not None
        await members.change_role(opened.accounts, acme, user, Role.READ, SYSTEM)

    async def sign_out(opened: Hub) -> None:
        user = await account_store.user_by_name(opened.db, "ada")
        assert user is not None
        await opened.db.write(lambda tx: session_store.remove_all(tx, user.id))

    def slowly(interrupt: Callable[[Hub], Awaitable[None]]) -> Iterator[bytes]:
        body = multipart(hidden, [("late.txt", b"A" * 200_000)])
        yield body[:100_000]
        # The file is being received, so the sender was authorized.
        until(lambda: len(incoming(hub)) == 1)
        hub.call(interrupt)
        yield body[100_000:]

    headers = {"content-type": "multipart/form-data; boundary=b"}
    answer = browser.post(f"{AT}/upload/main", content=slowly(demote if lost == "role" else sign_out), headers=headers)
    assert answer.status_code == status, answer.text
    assert paths_in(client, "acme/tiny") == {"a.txt"}
    assert incoming(hub) == []


@pytest.mark.one_engine
def test_client_that_disconnects_uploads_nothing(hub: RunningHub, ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    body = multipart(Page(browser.get(f"{AT}/upload/main")).hidden(f"{AT}/upload/main"), [("a.txt", b"A" * 200_000)])
    for cut in (100, 100_000, len(body) - 1):
        with socket.create_connection(hub.address) as connection:
            head = f"POST {AT}/upload/main HTTP/1.1\r\nHost: x\r\nCookie: token={browser.cookies['token']}\r\n"
            length = f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall((head + length).encode() + body[:cut])
            if cut > 1000:
                until(lambda: len(incoming(hub)) == 1)
        until(lambda: not incoming(hub))
    assert client.get(f"{AT}/raw/main/a.txt").content == b"old\n"


def multipart(fields: dict[str, str], files: list[tuple[str, bytes]]) -> bytes:
    """A form as a browser sends it, with the boundary b."""
    parts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}' for name, value in fields.items()]
    body = "\r\n".join(parts).encode()
    for name, content in files:
        head = (
            f'\r\n--b\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\nContent-Type: x/y\r\n\r\n'
        )
        body += head.encode() + content
    return body + b"\r\n--b--\r\n"


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (b"--b--\r\n", b"", 400),
        (b"--b--", b"--bx-", 400),
        (b"--b\r\n", b"preamble--b\r\n", 400),
        (b'name="seen"', b"name=seen", 400),
        (b'name="seen"', b'name="seen"; x="y"', 400),
        (b"Content-Disposition: form-data", b"Content-Disposition: attachment", 400),
        (b'name="csrf"', b'name="csrf2"', 403),
        (b'name="seen"', b'name="as"', 400),
        (b"x/y", b"x/y\r\nX-Long: " + b"a" * 20_000, 400),
        (b'filename="n.txt"', b'filename="\xff"', 400),
        (b"Content-Type: x/y", b"Content-Type: x/y\r\nContent-Transfer-Encoding: binary", 303),
        (b"AAAA", b"\r\n--c\r\n--", 303),
        (b"AAAA", b"\r\n-\r\r\n--\r\n", 303),
    ],
)
def test_malformed_form_is_rejected(
    ada: tuple[httpx.Client, httpx.Client], old: bytes, new: bytes, status: int
) -> None:
    browser, client = ada
    hidden = {"as": "commit", **Page(browser.get(f"{AT}/upload/main")).hidden(f"{AT}/upload/main")}
    body = multipart(hidden, [("n.txt", b"AAAA")])
    assert old in body
    body = body.replace(old, new, 1)
    # In parts of one byte, which cut every delimiter.
    parts = (body[at : at + 1] for at in range(len(body)))
    headers = {"content-type": "multipart/form-data; boundary=b"}
    answer = browser.post(f"{AT}/upload/main", content=parts if len(body) < 2000 else body, headers=headers)
    assert answer.status_code == status, answer.text
    if status == 303:
        assert client.get(f"{AT}/raw/main/n.txt").content == (new if old == b"AAAA" else b"AAAA")
    else:
        assert paths_in(client, "acme/tiny") == {"a.txt"}


@pytest.mark.one_engine
def test_field_after_a_file_is_rejected(ada: tuple[httpx.Client, httpx.Client]) -> None:
    """A CSRF field is found before any file is read."""
    browser, _ = ada
    fields = Page(browser.get(f"{AT}/upload/main")).hidden(f"{AT}/upload/main")
    first = multipart({"seen": fields["seen"]}, [("n.txt", b"x")]).removesuffix(b"--b--\r\n")
    rest = multipart({"csrf": fields["csrf"]}, [])
    headers = {"content-type": "multipart/form-data; boundary=b"}
    assert browser.post(f"{AT}/upload/main", content=first + rest, headers=headers).status_code == 403
    late = multipart(fields, [("n.txt", b"x")]).removesuffix(b"--b--\r\n") + multipart({"as": "commit"}, [])
    answer = browser.post(f"{AT}/upload/main", content=late, headers=headers)
    assert answer.status_code == 400
    assert "A field follows a file." in answer.text
    assert browser.post(f"{AT}/upload/main", data=fields).status_code == 415
    endless = multipart({**fields, "summary": "x" * 600_000}, [("n.txt", b"x")])
    assert browser.post(f"{AT}/upload/main", content=endless, headers=headers).status_code == 413


@pytest.mark.one_engine
def test_conflict_does_not_show_gated_files(hub: RunningHub, ada: tuple[httpx.Client, httpx.Client]) -> None:
    """Every user may propose a file with the name of one that only users with access may read."""
    _, client = ada
    old = head_of(client, "acme/tiny")
    create_commit(client, "acme/tiny", {"a.txt": b"for a few\n"})
    assert client.put("/api/models/acme/tiny/settings", json={"gated": "manual"}).status_code == 200
    with browser_of(hub, create_user(hub, "bob")) as guest:
        conflict = send(guest, [file("a.txt", b"x")], seen=old)
        assert conflict.status_code == 409
        assert "for a few" not in conflict.text
        assert "old" not in conflict.text.partition('<form id="form"')[0].partition("<main")[2]
        # The card stays readable without access, but its form is not offered.
        create_commit(client, "acme/tiny", {"README.md": b"# Card\n"})
        assert "/edit/" not in guest.get(f"{AT}/blob/main/README.md").text


@pytest.mark.one_engine
def test_script_gets_the_address_of_the_next_page(ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, _ = ada
    browser.headers["x-requested-with"] = "XMLHttpRequest"
    sent = send(browser, [file("n.txt")], **{"as": "pull_request"})
    assert sent.status_code == 201
    assert sent.headers["location"] == f"{AT}/discussions/1"
    assert "Opened pull request #1." in browser.get(sent.headers["location"]).text


@pytest.mark.one_engine
def test_endless_files_without_a_name_are_rejected(ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    hidden = Page(browser.get(f"{AT}/upload/main")).hidden(f"{AT}/upload/main")
    body = multipart(hidden, [("", b"")] * 2001)
    answer = browser.post(f"{AT}/upload/main", content=body, headers=FORM)
    assert answer.status_code == 413
    assert "at most 2,000 files" in answer.text
    assert paths_in(client, "acme/tiny") == {"a.txt"}


@pytest.mark.one_engine
def test_conflict_is_found_after_another_error(ada: tuple[httpx.Client, httpx.Client]) -> None:
    """A form that is rejected for another reason still names the commit that the user saw."""
    browser, client = ada
    address = f"{AT}/upload/main"
    late = fill(browser, [file("a.txt", b"mine")], summary="x" * 1001)
    create_commit(client, "acme/tiny", {"a.txt": b"theirs"})
    rejected = late()
    assert rejected.status_code == 422
    again = browser.post(address, data=Page(rejected).hidden(address), files=[file("a.txt", b"mine")])
    assert again.status_code == 409
    assert client.get(f"{AT}/raw/main/a.txt").content == b"theirs"


@pytest.mark.one_engine
@pytest.mark.parametrize("signed_in", [True, False], ids=["stranger", "anonymous"])
def test_nothing_is_received_for_a_closed_pull_request(
    hub: RunningHub, ada: tuple[httpx.Client, httpx.Client], signed_in: bool
) -> None:
    """No permission is needed to learn that it is closed, so its files must not reach the disk."""
    browser, client = ada
    send(browser, [file("n.txt")], **{"as": "pull_request"})
    closed = client.post("/api/models/acme/tiny/discussions/1/status", json={"status": "closed"})
    assert closed.status_code == 200, closed.text
    stored: list[int] = []

    def slowly(hidden: dict[str, str]) -> Iterator[bytes]:
        body = multipart(hidden, [("late.txt", b"A" * 400_000)])
        yield body[:200_000]
        for _ in range(20):
            stored.append(len(incoming(hub)))
            browser.get("/healthz")
        yield body[200_000:]

    with browser_of(hub, create_user(hub, "bob") if signed_in else None) as guest:
        page = guest.get("/settings/profile" if signed_in else "/login")
        hidden = {"csrf": Page(page).hidden()["csrf"], "seen": "0" * 40, "as": "commit"}
        answer = guest.post(f"{AT}/upload/refs%2Fpr%2F1", content=slowly(hidden), headers=FORM)
    assert answer.status_code == 404
    assert set(stored) == {0}


@pytest.mark.one_engine
def test_full_disk_is_named_and_nothing_is_left(hub: RunningHub, ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    with small_disk(hub.settings.data_dir / "lfs") as disk:
        disk.leave(0)
        answer = send(browser, [file("n.txt")])
        assert answer.status_code == 503
        assert "The storage of large files is full." in answer.text
        assert send_commit(client, "acme/tiny", {"n.txt": b"x" * 1_000_000}).status_code == 503
        assert incoming(hub) == []
        disk.clear()
        assert send(browser, [file("n.txt")]).status_code == 303
