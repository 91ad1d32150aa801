"""Images of a repo on its pages, in a real Chromium: from the data folder, and from an object store."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.bed import engines
from tests.bed.people import api, browser_of, create_token, create_user
from tests.bed.repos import create_commit, create_repo, send_large, send_lines
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.s3_server import S3Server
from tests.objects.stores import bucket_place

pytestmark = pytest.mark.browser

README = b"# Plot\n\n![In Markdown](plots/plot.png)\n\n<img src='plots/plot.png' alt='In HTML'>\n"
WIDTH = 37


def picture() -> bytes:
    """A PNG, a gray rectangle."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header, rows = struct.pack(">IIBBBBB", WIDTH, 20, 8, 0, 0, 0, 0), (b"\0" + b"\x80" * WIDTH) * 20
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture(params=["folder", "store", "store through the hub"])
def hub(
    request: pytest.FixtureRequest, sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunningHub]:
    flags = {}
    if request.param != "folder":
        server: S3Server = request.getfixturevalue("s3_server")
        for name, value in server.variables.items():
            monkeypatch.setenv(name, value)
        links = "on" if request.param == "store" else "off"
        flags = {**bucket_place(server, tmp_path).flags, "objects_links": links}
    url = engines.SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(engines.settings_for(url, tmp_path, **flags)) as started:
        yield started


def test_large_images_are_shown_on_pages(hub: RunningHub, browser: Browser, request: pytest.FixtureRequest) -> None:
    user, content = create_user(hub, "ada"), picture()
    with api(hub, create_token(hub, user)) as ada:
        create_repo(ada, "plots", private=True)
        oid = send_large(ada, "ada/plots", content)
        line = {"path": "plots/plot.png", "algo": "sha256", "oid": oid, "size": len(content)}
        assert send_lines(ada, "ada/plots", ("lfsFile", line)).status_code == 200
        create_commit(ada, "ada/plots", {"README.md": README})
        is_redirected = ada.get("/ada/plots/resolve/main/plots/plot.png").status_code == 302
        assert is_redirected == ("[store]" in request.node.name)
    with browser_of(hub, user) as client, browser.new_context(base_url=hub.url) as context:
        context.add_cookies(
            [{"name": each.name, "value": each.value or "", "url": hub.url} for each in client.cookies.jar]
        )
        page = context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        for address, names in (
            ("/ada/plots", ("In Markdown", "In HTML")),
            ("/ada/plots/blob/main/plots/plot.png", ("plot.png",)),
        ):
            page.goto(address)
            for name in names:
                image = page.get_by_role("img", name=name)
                expect(image).to_have_js_property("complete", value=True)
                expect(image).to_have_js_property("naturalWidth", WIDTH)
        assert said == []
        # Opened by itself, it may come from the store.
        opened = page.goto("/ada/plots/resolve/main/plots/plot.png")
        assert opened is not None
        assert (opened.status, opened.body()) == (200, content)
