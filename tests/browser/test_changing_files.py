"""Changing files in a real Chromium, with script and without, on a phone and on a desktop."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.bed.people import api, browser_of, create_token, create_user
from tests.bed.pictures import picture
from tests.bed.repos import create_commit, create_repo, head_of, paths_in
from tests.bed.running_hub import RunningHub
from tests.browser.axe import objections

from hubgate.server.accounts.pictures.model import MEDIA_TYPE

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1440, "height": 900}
AT = "/ada/tiny"
MB = 1_000_000

ways = pytest.mark.parametrize(
    ("scripted", "size"),
    [(True, DESKTOP), (True, PHONE), (False, DESKTOP), (False, PHONE)],
    ids=["script on a desktop", "script on a phone", "no script on a desktop", "no script on a phone"],
)


@pytest.fixture
def client(sqlite_hub: RunningHub) -> Iterator[httpx.Client]:
    """Ada's API client. Her repo has a text."""
    user = create_user(sqlite_hub, "ada")
    with api(sqlite_hub, create_token(sqlite_hub, user)) as client:
        create_repo(client, "tiny")
        create_commit(client, "ada/tiny", {"notes.txt": b"one\ntwo\nthree\n"})
        yield client


@pytest.fixture
def opened(sqlite_hub: RunningHub, browser: Browser) -> Iterator[Any]:
    """Opens a browser with a signed-in user; a console message fails the test."""
    contexts, said = [], list[str]()

    def open_page(name: str, *, scripted: bool = True, size: dict[str, int] = DESKTOP) -> Page:
        async def find(hub: Any) -> Any:
            from hubgate.server.accounts import store

            return await store.user_by_name(hub.db, name)

        user = sqlite_hub.call(find) or create_user(sqlite_hub, name)
        context = browser.new_context(base_url=sqlite_hub.url, java_script_enabled=scripted, viewport=size)
        contexts.append(context)
        with browser_of(sqlite_hub, user) as signed_in:
            cookies = [{"name": one.name, "value": one.value, "url": sqlite_hub.url} for one in signed_in.cookies.jar]
        context.add_cookies(cookies)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        return page

    yield open_page
    for context in contexts:
        context.close()
    # Chromium itself reports the status of a rejected form.
    assert [line for line in said if "the server responded with a status of 409" not in line] == []


def expect_sound(page: Page, *, scripted: bool) -> None:
    """No horizontal scrolling; axe-core needs a script."""
    if scripted:
        assert objections(page) == []
        for width in (390, 1440):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") == width


def press(page: Page, name: str) -> None:
    page.locator("main").get_by_role("button", name=name, exact=True).click()


@ways
def test_large_file_is_uploaded(
    client: httpx.Client, opened: Any, tmp_path: Path, scripted: bool, size: dict[str, int]
) -> None:
    content = bytes(range(256)) * (100 * MB // 256)
    (tmp_path / "weights.dat").write_bytes(content)
    (tmp_path / "é small.txt").write_text("small\n")
    page = opened("ada", scripted=scripted, size=size)
    page.goto(f"{AT}/tree/main")
    page.get_by_role("link", name="Upload", exact=True).click()
    files = page.get_by_label("Files", exact=True)
    if scripted:
        # One after the other: the list collects them.
        files.set_input_files(tmp_path / "weights.dat")
        files.set_input_files(tmp_path / "é small.txt")
        expect(page.locator(".chosen li")).to_have_count(2)
        expect(page.locator("form [role=status]")).to_have_text("2 files, 100.0 MB")
        expect_sound(page, scripted=True)
        values: list[float] = []
        page.expose_function("report", lambda value: values.append(value))
        page.evaluate(
            "new MutationObserver(([seen]) => report(seen.target.value))"
            ".observe(document.querySelector('progress'), {attributes: true, attributeFilter: ['value']})"
        )
    else:
        files.set_input_files([tmp_path / "weights.dat", tmp_path / "é small.txt"])
    page.get_by_label("Commit message").fill("Both files")
    press(page, "Upload")
    page.wait_for_url(f"**{AT}/tree/main", timeout=60_000)
    expect(page.locator(".flash")).to_contain_text("Committed")
    if scripted:
        assert values == sorted(values)
        assert any(0 < value < 1 for value in values)
    assert paths_in(client, "ada/tiny") == {"notes.txt", "weights.dat", "é small.txt"}
    (stored,) = client.post("/api/models/ada/tiny/paths-info/main", json={"paths": ["weights.dat"]}).json()
    assert stored["lfs"]["oid"] == hashlib.sha256(content).hexdigest()


@ways
def test_edit_with_a_conflict_loses_nothing(
    client: httpx.Client, opened: Any, scripted: bool, size: dict[str, int]
) -> None:
    page = opened("ada", scripted=scripted, size=size)
    page.goto(f"{AT}/blob/main/notes.txt")
    page.get_by_role("link", name="Edit", exact=True).click()
    text = page.get_by_label("Text", exact=True)
    expect(text).to_have_value("one\ntwo\nthree\n")
    expect_sound(page, scripted=scripted)
    text.fill("one\nmine\nthree\n")
    create_commit(client, "ada/tiny", {"notes.txt": b"one\ntheirs\nthree\n"})
    press(page, "Save changes")
    expect(page.locator(".error-summary")).to_contain_text("Changed by another commit since you opened this page")
    expect(page.get_by_role("region", name="Changes to notes.txt")).to_contain_text("+theirs")
    expect(text).to_have_value("one\nmine\nthree\n")
    expect_sound(page, scripted=scripted)
    text.fill("one\nmine and theirs\nthree\n")
    press(page, "Save changes")
    expect(page.locator(".flash")).to_contain_text("Committed")
    assert client.get(f"{AT}/raw/main/notes.txt").content == b"one\nmine and theirs\nthree\n"


@ways
def test_edit_of_a_guest_becomes_a_pull_request(
    client: httpx.Client, opened: Any, scripted: bool, size: dict[str, int]
) -> None:
    before = head_of(client, "ada/tiny")
    page = opened("bob", scripted=scripted, size=size)
    page.goto(f"{AT}/edit/main/notes.txt")
    page.get_by_label("Text", exact=True).fill("better\n")
    page.get_by_label("Commit message").fill("Better notes")
    press(page, "Save changes")
    page.wait_for_url(f"**{AT}/discussions/1")
    expect(page.locator("main")).to_contain_text("Better notes")
    expect(page.locator(".flash")).to_have_text("Opened pull request #1.")
    expect_sound(page, scripted=scripted)
    assert head_of(client, "ada/tiny") == before
    assert client.get(f"{AT}/raw/refs%2Fpr%2F1/notes.txt").content == b"better\n"


@ways
def test_picture_is_uploaded_and_removed(
    client: httpx.Client, opened: Any, tmp_path: Path, scripted: bool, size: dict[str, int]
) -> None:
    (tmp_path / "me.png").write_bytes(picture())
    page = opened("ada", scripted=scripted, size=size)
    page.goto("/settings/profile")
    page.locator("input[type=file]").set_input_files(tmp_path / "me.png")
    press(page, "Upload")
    expect(page.locator(".flash")).to_be_visible()
    expect_sound(page, scripted=scripted)
    shown = page.locator("main img.avatar").first
    assert page.request.get(shown.get_attribute("src") or "").headers["content-type"] == MEDIA_TYPE
    press(page, "Remove")
    expect(page.get_by_role("button", name="Remove", exact=True)).to_have_count(0)


DROP = """([target, files]) => {
    const data = new DataTransfer();
    for (const [name, text] of files) data.items.add(new File([text], name));
    for (const type of ["dragover", "drop"])
        target.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


def test_rejected_upload_retains_the_chosen_files(client: httpx.Client, opened: Any) -> None:
    """Dropped and removed files, a conflict that the next attempt settles, and a file that is too large."""
    page = opened("ada")
    page.goto(f"{AT}/upload/main")
    expect(page.locator("form .field").first).to_contain_text("Drop files or folders")
    page.evaluate(DROP, [page.locator(".drop").element_handle(), [["notes.txt", "mine"]]])
    # Beside the box.
    page.evaluate(DROP, [page.locator("h1").element_handle(), [["other.txt", "x"]]])
    expect(page.locator(".chosen li")).to_have_count(2)
    page.get_by_role("button", name="Remove other.txt").click()
    expect(page.locator(".chosen li")).to_have_count(1)
    create_commit(client, "ada/tiny", {"notes.txt": b"theirs"})
    press(page, "Upload")
    problem = page.locator("form [role=alert]")
    expect(problem).to_contain_text("Changed by another commit since you opened this page: notes.txt.")
    expect(problem).to_be_focused()
    assert objections(page) == []
    press(page, "Upload")
    expect(page.locator(".flash")).to_contain_text("Committed")
    assert client.get(f"{AT}/raw/main/notes.txt").content == b"mine"
    page.goto(f"{AT}/upload/main")
    press(page, "Upload")
    expect(problem).to_have_text("Choose a file.")
    page.evaluate("document.querySelector('form[data-max]').dataset.max = 3")
    page.evaluate(DROP, [page.locator(".drop").element_handle(), [["large.txt", "four"]]])
    expect(page.locator(".chosen li")).to_contain_text("too large")
    press(page, "Upload")
    expect(problem).to_contain_text("Too large: large.txt.")


def test_leaving_with_unsaved_text_is_confirmed(client: httpx.Client, opened: Any) -> None:
    page = opened("ada")
    asked: list[str] = []

    def stay(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", stay)
    page.goto(f"{AT}/edit/main/notes.txt")
    page.goto(f"{AT}/edit/main/notes.txt")
    assert asked == []
    page.get_by_label("Text", exact=True).press_sequentially("x")
    page.goto(f"{AT}/tree/main")
    assert asked == ["beforeunload"]
