"""Changing files in the browser: add, edit, rename and delete, as a commit or a pull request; no work is lost."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from tests.bed.git import clone_repo
from tests.bed.people import (
    Page,
    api,
    browser_of,
    create_organization,
    create_token,
    create_user,
    fill_form,
    post,
    submit,
)
from tests.bed.repos import create_commit, create_repo, head_of, paths_in, send_large, send_lines
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

AT = "/ada/tiny"


@pytest.fixture
def ada(hub: RunningHub) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """Ada's browser and her API client. Her repo has a text, in a folder another one, and a large file."""
    user = create_user(hub, "ada")
    with browser_of(hub, user) as browser, api(hub, create_token(hub, user)) as client:
        create_repo(client, "tiny")
        oid = send_large(client, "ada/tiny", b"\0large")
        create_commit(client, "ada/tiny", {"a.txt": b"one\ntwo\n", "dir/b.txt": b"b\n", "dir/c.bin": b"\0c"})
        assert send_lines(client, "ada/tiny", ("lfsFile", {"path": "w.bin", "oid": oid, "size": 6})).status_code == 200
        yield browser, client


def raw(client: httpx.Client, path: str, rev: str = "main") -> bytes:
    found = client.get(f"{AT}/raw/{rev}/{path}")
    assert found.status_code == 200, found.text
    return found.content


def shown_text(response: httpx.Response) -> str:
    """The text in the form, as a browser reads it: the first line break is not part of it."""
    found = re.search(r'<textarea class="editor"[^>]*>\n(.*?)</textarea>', response.text, re.DOTALL)
    assert found is not None, response.text
    return unescape(found[1])


def last_commit(client: httpx.Client) -> str:
    title: str = client.get("/api/models/ada/tiny/commits/main").json()[0]["title"]
    return title


def test_file_is_added(ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    folder = browser.get(f"{AT}/tree/main/dir").text
    assert f'href="{AT}/new/main/dir"' in folder
    assert 'value="dir/"' in browser.get(f"{AT}/new/main/dir").text
    made = submit(browser, f"{AT}/new/main/dir", path="dir/sub/d.txt", content="x\r\ny\r\n", description="Why\r\nnot")
    assert made.headers["location"] == f"{AT}/blob/main/dir/sub/d.txt"
    assert raw(client, "dir/sub/d.txt") == b"x\ny\n"
    assert last_commit(client) == "Add d.txt"
    assert "Committed" in browser.get(made.headers["location"]).text
    message = client.get("/api/models/ada/tiny/commits/main").json()[0]["message"]
    assert message == "Why\nnot"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "Enter the name of the file."),
        ("a.txt", "a.txt exists already."),
        ("dir", "dir exists already."),
        ("dir/", "not a relative path"),
        ("/etc/passwd", "not a relative path"),
        ("../x", "cannot contain . or .."),
        ("x/.git/config", "cannot go through .git"),
        ("a.txt/b", "a.txt is a file."),
        ("a\\b", "not a backslash"),
        ("x" * 300, "at most 255 bytes"),
    ],
)
def test_invalid_path_is_rejected_and_the_text_stays(
    ada: tuple[httpx.Client, httpx.Client], path: str, message: str
) -> None:
    browser, client = ada
    before = head_of(client, "ada/tiny")
    rejected = submit(browser, f"{AT}/new/main", path=path, content="<kept>\r\n", summary="Mine")
    assert rejected.status_code == 422
    assert message in unescape(rejected.text)
    assert shown_text(rejected) == "<kept>\n"
    assert 'value="Mine"' in rejected.text
    assert head_of(client, "ada/tiny") == before


def test_file_is_edited(ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    assert f'href="{AT}/edit/main/a.txt">Edit' in browser.get(f"{AT}/blob/main/a.txt").text
    assert shown_text(browser.get(f"{AT}/edit/main/a.txt")) == "one\ntwo\n"
    edit = {"path": "a.txt", "content": "one\r\n2\r\n"}
    assert submit(browser, f"{AT}/edit/main/a.txt", **edit, summary="Count").status_code == 303
    assert raw(client, "a.txt") == b"one\n2\n"
    assert last_commit(client) == "Count"
    unchanged = submit(browser, f"{AT}/edit/main/a.txt", **edit)
    assert unchanged.status_code == 422
    assert "Nothing has changed." in unchanged.text
    too_long = submit(browser, f"{AT}/edit/main/a.txt", path="a.txt", content="é" * 140_000)
    assert too_long.status_code == 422
    assert "at most 262,144 bytes" in too_long.text
    assert len(shown_text(too_long)) == 140_000


@pytest.mark.parametrize(
    ("before", "shown", "typed", "after"),
    [
        (b"a\r\nb\r\n", "a\nb\n", "a\r\nc\r\n", b"a\r\nc\r\n"),
        (b"a\nb", "a\nb", "a\r\nc", b"a\nc"),
        (b"\xef\xbb\xbfa\n", "a\n", "b\r\n", b"\xef\xbb\xbfb\n"),
        (b"\n\n<b>&amp;\n", "\n\n<b>&amp;\n", "\r\n\r\n</textarea>\r\n", b"\n\n</textarea>\n"),
        (b"a\r\nb\nc\r\n", "a\nb\nc\n", "a\r\nb\r\n", b"a\r\nb\r\n"),
        (b"", "", "x", b"x"),
    ],
    ids=["crlf", "no end", "bom", "leading lines", "mixed", "empty"],
)
def test_line_breaks_are_those_of_the_file(
    ada: tuple[httpx.Client, httpx.Client], before: bytes, shown: str, typed: str, after: bytes
) -> None:
    browser, client = ada
    create_commit(client, "ada/tiny", {"t.txt": before})
    page = browser.get(f"{AT}/edit/main/t.txt")
    assert shown_text(page) == shown
    assert ("several kinds of line breaks" in page.text) is (b"b\nc\r" in before)
    assert submit(browser, f"{AT}/edit/main/t.txt", path="t.txt", content=typed).status_code == 303
    assert raw(client, "t.txt") == after


def test_unusual_names_stay_as_they_are(ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    names = [" spaced .txt ", "100%.txt", 'a"b.txt', "<b>.txt", "ü/ñ?#.txt"]
    create_commit(client, "ada/tiny", dict.fromkeys(names, b"old\n"))
    before = paths_in(client, "ada/tiny")
    for name in names:
        at = f"{AT}/edit/main/{quote(name)}"
        form = browser.get(at)
        shown = re.search(r'name="path" type="text" value="([^"]*)"', form.text)
        assert shown is not None
        assert unescape(shown[1]) == name
        fields = {**Page(form).hidden(at), "path": unescape(shown[1]), "content": "new\r\n"}
        assert browser.post(at, data=fields).status_code == 303, name
        assert raw(client, quote(name)) == b"new\n"
    assert paths_in(client, "ada/tiny") == before


def test_concurrent_edit_of_the_same_file_is_shown(ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    save = fill_form(browser, f"{AT}/edit/main/a.txt", path="a.txt", content="mine\r\n", summary="Mine")
    newest = create_commit(client, "ada/tiny", {"a.txt": b"one\ntheirs\n"})
    conflict = save()
    assert conflict.status_code == 409
    assert "Changed by another commit since you opened this page: a.txt." in conflict.text
    # The error is that of the text, not of every field.
    assert conflict.text.count('aria-invalid="true"') == 1
    assert "<del>-two\n</del>" in conflict.text
    assert "<ins>+theirs\n</ins>" in conflict.text
    assert shown_text(conflict) == "mine\n"
    assert 'value="Mine"' in conflict.text
    assert raw(client, "a.txt") == b"one\ntheirs\n"
    # A second attempt is a decision to replace the newer version.
    fields = dict(re.findall(r'<input type="hidden" name="(csrf|seen|as)" value="([^"]*)"', conflict.text))
    assert fields["seen"] == newest
    again = browser.post(f"{AT}/edit/main/a.txt", data={**fields, "path": "a.txt", "content": "both\r\n"})
    assert again.status_code == 303
    assert raw(client, "a.txt") == b"both\n"


def test_deleted_file_is_a_conflict_and_can_be_saved_again(ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    save = fill_form(browser, f"{AT}/edit/main/a.txt", path="a.txt", content="mine\r\n")
    create_commit(client, "ada/tiny", {}, delete=["a.txt"])
    conflict = save()
    assert conflict.status_code == 409
    assert shown_text(conflict) == "mine\n"
    fields = dict(re.findall(r'<input type="hidden" name="(csrf|seen|as)" value="([^"]*)"', conflict.text))
    again = browser.post(f"{AT}/edit/main/a.txt", data={**fields, "path": "a.txt", "content": "mine\r\n"})
    assert again.status_code == 303
    assert raw(client, "a.txt") == b"mine\n"


def test_concurrent_change_of_another_file_is_no_conflict(ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    save = fill_form(browser, f"{AT}/edit/main/a.txt", path="a.txt", content="mine\r\n")
    create_commit(client, "ada/tiny", {"other.txt": b"theirs"})
    assert save().status_code == 303
    assert raw(client, "a.txt") == b"mine\n"
    assert raw(client, "other.txt") == b"theirs"


def test_path_taken_since_the_page_was_opened_is_not_overwritten(ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    add = fill_form(browser, f"{AT}/new/main", path="n.txt", content="mine")
    rename = fill_form(browser, f"{AT}/edit/main/a.txt", path="n.txt")
    create_commit(client, "ada/tiny", {"n.txt": b"theirs"})
    for send in (add, rename):
        rejected = send()
        assert rejected.status_code == 422
        assert "n.txt exists already." in rejected.text
    assert raw(client, "n.txt") == b"theirs"


def test_files_are_renamed_with_their_content(ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    pointer = raw(client, "w.bin")
    content = bytes(range(256)) * 8192
    create_commit(client, "ada/tiny", {"big.raw": content})
    for old, new in (("w.bin", "weights/w.dat"), ("dir/c.bin", "c.bin"), ("big.raw", "moved.raw")):
        page = browser.get(f"{AT}/blob/main/{old}").text
        assert f'href="{AT}/edit/main/{old}">Rename' in page
        assert submit(browser, f"{AT}/edit/main/{old}", path=new, **{"as": "commit"}).status_code == 303, old
    assert last_commit(client) == "Rename big.raw to moved.raw"
    assert paths_in(client, "ada/tiny") == {"a.txt", "dir/b.txt", "weights/w.dat", "c.bin", "moved.raw"}
    assert raw(client, "weights/w.dat") == pointer
    assert client.get(f"{AT}/resolve/main/weights/w.dat", follow_redirects=True).content == b"\0large"
    # Without the line a clone would contain the pointer.
    assert b"/weights/w.dat filter=lfs" in raw(client, ".gitattributes")
    assert client.get(f"{AT}/resolve/main/moved.raw", follow_redirects=True).content == content
    both = submit(browser, f"{AT}/edit/main/a.txt", path="z.txt", content="new\r\n")
    assert both.headers["location"] == f"{AT}/blob/main/z.txt"
    assert raw(client, "z.txt") == b"new\n"
    assert "a.txt" not in paths_in(client, "ada/tiny")
    same = submit(browser, f"{AT}/edit/main/c.bin", path="c.bin")
    assert "Nothing has changed." in same.text


def test_file_and_folder_are_deleted(ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    assert "the folder" in browser.get(f"{AT}/delete/main/dir").text
    assert "with its 2 files" in browser.get(f"{AT}/delete/main/dir").text
    gone = submit(browser, f"{AT}/delete/main/dir/b.txt")
    assert gone.headers["location"] == f"{AT}/tree/main/dir"
    gone = submit(browser, f"{AT}/delete/main/dir")
    assert gone.headers["location"] == f"{AT}/tree/main"
    assert paths_in(client, "ada/tiny") == {"a.txt", "w.bin"}
    assert last_commit(client) == "Delete dir"
    assert browser.get(f"{AT}/delete/main/dir").status_code == 404
    assert browser.get(f"{AT}/delete/main").status_code == 404
    remove = fill_form(browser, f"{AT}/delete/main/a.txt")
    create_commit(client, "ada/tiny", {"a.txt": b"newer"})
    assert remove().status_code == 409
    assert raw(client, "a.txt") == b"newer"


def test_executable_stays_executable_when_it_is_renamed(
    ada: tuple[httpx.Client, httpx.Client], hub: RunningHub, tmp_path: Path
) -> None:
    browser, client = ada
    copy = clone_repo(hub, "ada/tiny", tmp_path / "copy", client.headers["authorization"].removeprefix("Bearer "))
    copy.write("run.sh", "#!/bin/sh\n")
    copy.git("add", "--chmod=+x", "run.sh")
    copy.git("commit", "-m", "A program")
    copy.git("push")
    assert submit(browser, f"{AT}/edit/main/run.sh", path="bin/run.sh").status_code == 303
    copy.git("fetch")
    assert copy.git("ls-tree", "origin/main", "bin/run.sh").startswith("100755")


def test_change_becomes_a_pull_request(ada: tuple[httpx.Client, httpx.Client], hub: RunningHub) -> None:
    browser, client = ada
    before = head_of(client, "ada/tiny")
    with browser_of(hub, create_user(hub, "bob")) as guest:
        page = guest.get(f"{AT}/edit/main/a.txt")
        assert "You cannot change this repo directly." in page.text
        opened = submit(guest, f"{AT}/edit/main/a.txt", path="a.txt", content="better\r\n", summary="Better words")
        assert opened.headers["location"] == f"{AT}/discussions/1"
        assert "Opened pull request #1." in guest.get(f"{AT}/discussions/1").text
        assert head_of(client, "ada/tiny") == before
        assert raw(client, "a.txt", "refs%2Fpr%2F1") == b"better\n"
        assert client.get("/api/models/ada/tiny/discussions/1").json()["title"] == "Better words"
        # The author continues on the pull request's own page.
        at = f"{AT}/edit/refs%2Fpr%2F1/a.txt"
        assert submit(guest, at, path="a.txt", content="best\r\n").status_code == 303
        assert raw(client, "a.txt", "refs%2Fpr%2F1") == b"best\n"
        # A guest cannot commit to the branch.
        refused = submit(guest, f"{AT}/edit/main/a.txt", path="a.txt", content="x", **{"as": "commit"})
        assert refused.status_code == 403
    chosen = submit(browser, f"{AT}/delete/main/a.txt", **{"as": "pull_request"})
    assert chosen.headers["location"] == f"{AT}/discussions/2"
    assert head_of(client, "ada/tiny") == before


def test_forms_are_for_callers_who_may_commit_or_propose(hub: RunningHub) -> None:
    people = {name: create_user(hub, name) for name in ("ada", "writer", "reader", "stranger")}
    create_organization(hub, "acme", people["ada"], writer="write", reader="read")
    with api(hub, create_token(hub, people["ada"])) as client:
        create_repo(client, "acme/open")
        create_repo(client, "acme/hidden", private=True)
        for name in ("acme/open", "acme/hidden"):
            create_commit(client, name, {"a.txt": b"a"})
        client.put("/api/models/acme/open/settings", json={"discussionsDisabled": True})
    addresses = ["new/main", "edit/main/a.txt", "upload/main", "delete/main/a.txt"]
    expected = {"writer": (200, 200), "reader": (403, 200), "stranger": (403, 404), None: (303, 404)}
    for name, (public, private) in expected.items():
        with browser_of(hub, people[name] if name else None) as browser:
            for address in addresses:
                assert browser.get(f"/acme/open/{address}").status_code == public, (name, address)
                assert browser.get(f"/acme/hidden/{address}").status_code == private, (name, address)
            shown = browser.get("/acme/open/tree/main").text
            assert ("/acme/open/upload/main" in shown) is (name == "writer")


def test_gated_file_is_edited_only_by_readers(ada: tuple[httpx.Client, httpx.Client], hub: RunningHub) -> None:
    _, client = ada
    client.put("/api/models/ada/tiny/settings", json={"gated": "manual"})
    with browser_of(hub, create_user(hub, "bob")) as guest:
        assert guest.get(f"{AT}/edit/main/a.txt").status_code == 403
        seen = head_of(client, "ada/tiny")
        fields = {"path": "b.txt", "seen": seen, "as": "pull_request"}
        assert post(guest, f"{AT}/edit/main/a.txt", **fields).status_code == 403
        assert submit(guest, f"{AT}/new/main", path="b.txt", content="b").status_code == 303


@pytest.mark.parametrize("rev", ["v1", "sha"])
def test_tags_and_commits_cannot_be_changed(ada: tuple[httpx.Client, httpx.Client], rev: str) -> None:
    browser, client = ada
    client.post("/api/models/ada/tiny/tag/main", json={"tag": "v1"})
    at = rev if rev == "v1" else head_of(client, "ada/tiny")
    assert "/edit/" not in browser.get(f"{AT}/blob/{at}/a.txt").text
    assert "/upload/" not in browser.get(f"{AT}/tree/{at}").text
    assert browser.get(f"{AT}/edit/{at}/a.txt").status_code == 404
    assert post(browser, f"{AT}/edit/{at}/a.txt", seen="0" * 40, path="a.txt", content="x").status_code == 404


def test_forged_form_changes_nothing(ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    seen = head_of(client, "ada/tiny")
    fields = {"seen": seen, "path": "x", "content": "x", "as": "commit"}
    for address in ("new/main", "edit/main/a.txt", "delete/main/a.txt"):
        assert browser.post(f"{AT}/{address}", data=fields).status_code == 403
    assert browser.post(f"{AT}/upload/main", data=fields, files={"files": ("x", b"x")}).status_code == 403
    assert head_of(client, "ada/tiny") == seen
    incomplete = post(browser, f"{AT}/delete/main/a.txt", seen="main")
    assert incomplete.status_code == 422


def test_deletion_finds_a_conflict_after_another_error(ada: tuple[httpx.Client, httpx.Client]) -> None:
    browser, client = ada
    address = f"{AT}/delete/main/a.txt"
    remove = fill_form(browser, address, summary="x" * 1001)
    create_commit(client, "ada/tiny", {"a.txt": b"newer"})
    rejected = remove()
    assert rejected.status_code == 422
    assert browser.post(address, data=Page(rejected).hidden(address)).status_code == 409
    assert raw(client, "a.txt") == b"newer"
