"""Profile pictures and app logos: drawn anew from uploads, served from the hub, removed with their owners."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tests.bed.apps import create_app
from tests.bed.people import Page, api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.pictures import bomb, opened, photo_with_location, picture
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User

PAGE = "/settings/profile"
PICTURE = "/settings/picture"


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def browser(hub: RunningHub, ada: User) -> Iterator[httpx.Client]:
    with browser_of(hub, ada) as client:
        yield client


def upload(client: httpx.Client, content: bytes, page: str = PAGE, action: str = PICTURE) -> httpx.Response:
    hidden = Page(client.get(page)).hidden(action)
    return client.post(action, data=hidden, files={"picture": ("me.png", content)})


def shown(client: httpx.Client, owner_id: str, query: str = "") -> httpx.Response:
    return client.get(f"/avatars/{owner_id}.svg{query}", follow_redirects=True)


def test_picture_replaces_the_generated_one(hub: RunningHub, ada: User, browser: httpx.Client) -> None:
    generated = shown(browser, ada.id)
    assert generated.headers["content-type"] == "image/svg+xml"
    saved = upload(browser, picture())
    assert saved.headers["location"] == PAGE
    with hub.client() as visitor:
        for query, side in (("", 256), ("?size=64", 64), ("?size=65", 256)):
            found = shown(visitor, ada.id, query)
            assert found.headers["content-type"] == "image/webp"
            assert found.headers["x-content-type-options"] == "nosniff"
            assert found.headers["content-security-policy"] == "default-src 'none'; sandbox"
            assert "immutable" in found.headers["cache-control"]
            image = opened(found.content)
            assert (image.format, image.size) == ("WEBP", (side, side))
        first = str(found.url)
        assert visitor.get(f"/avatars/{ada.id}.svg").headers["cache-control"] == "public, max-age=60"
        assert upload(browser, picture(size=(10, 10))).status_code == 303
        second = str(shown(visitor, ada.id).url)
        assert second != first
        # A page that was opened before names the old picture.
        outdated = visitor.get(first)
        assert (outdated.status_code, outdated.headers["cache-control"]) == (200, "no-cache")
        assert visitor.get(second.replace("256.webp", "999.webp")).status_code == 404
        assert submit(browser, PAGE, f"{PICTURE}/delete").headers["location"] == PAGE
        assert shown(visitor, ada.id).content == generated.content
        assert visitor.get(second).status_code == 404


@pytest.mark.one_engine
def test_api_leads_to_the_picture(hub: RunningHub, ada: User, browser: httpx.Client) -> None:
    upload(browser, picture())
    with api(hub, create_token(hub, ada)) as client:
        addresses = [
            client.get("/api/whoami-v2").json()["avatarUrl"],
            client.get("/api/users/ada/overview").json()["avatarUrl"],
        ]
        for address in addresses:
            found = client.get(address, follow_redirects=True)
            assert found.headers["content-type"] == "image/webp"


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("kind", "mode"),
    [("PNG", mode) for mode in ("RGB", "RGBA", "P", "L", "1")] + [("JPEG", "CMYK"), ("GIF", "P"), ("WEBP", "RGBA")],
)
def test_common_formats_are_accepted(ada: User, browser: httpx.Client, kind: str, mode: str) -> None:
    assert upload(browser, picture(kind, mode=mode)).status_code == 303
    drawn = opened(shown(browser, ada.id).content).convert("RGB")
    # Cropped to the square in the middle: still half and half.
    left, right = drawn.getpixel((20, 128)), drawn.getpixel((236, 128))
    if mode not in ("L", "1"):
        assert isinstance(left, tuple)
        assert isinstance(right, tuple)
        assert left[0] > left[2] + 100
        assert right[2] > right[0] + 100


@pytest.mark.one_engine
def test_only_pixels_are_stored(ada: User, browser: httpx.Client) -> None:
    content = photo_with_location()
    assert b"private note" in content
    assert upload(browser, content).status_code == 303
    found = shown(browser, ada.id).content
    assert b"private note" not in found
    image = opened(found)
    assert not image.getexif()
    assert "icc_profile" not in image.info
    # Turned as its EXIF data said: what was left is above now.
    above, below = image.convert("RGB").getpixel((128, 20)), image.convert("RGB").getpixel((128, 236))
    assert isinstance(above, tuple)
    assert isinstance(below, tuple)
    assert above[0] > above[2]
    assert below[2] > below[0]


HOSTILE: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "text": lambda: b"<script>alert(1)</script>",
    "SVG": lambda: b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
    "another format": lambda: picture("TIFF"),
    "cut off": lambda: picture(size=(600, 600))[:-200] + picture()[-12:],
    "bomb": bomb,
    "bomb of one row": lambda: bomb(2_000_000_000, 1),
    "too many pixels": lambda: picture(size=(5001, 5000), mode="1"),
    "PNG and ZIP": lambda: picture() + b"PK\x05\x06" + b"\0" * 18,
    "JPEG and script": lambda: picture("JPEG") + b"<script>alert(1)</script>",
    "GIF and script": lambda: picture("GIF") + b"=1;alert(1)//",
    "WebP and PDF": lambda: picture("WEBP") + b"%PDF-1.4",
    "GIF in front of HTML": lambda: b"GIF89a<html>;",
    "too many bytes": lambda: picture() + b"\0" * 1_000_000,
}


@pytest.mark.one_engine
@pytest.mark.parametrize("name", HOSTILE)
def test_other_files_are_rejected(ada: User, browser: httpx.Client, name: str) -> None:
    rejected = upload(browser, HOSTILE[name]())
    assert rejected.status_code == 422
    assert 'href="#picture"' in rejected.text
    assert shown(browser, ada.id).headers["content-type"] == "image/svg+xml"


@pytest.mark.one_engine
def test_forged_or_incomplete_form_changes_nothing(hub: RunningHub, ada: User, browser: httpx.Client) -> None:
    forged = browser.post(PICTURE, files={"picture": ("me.png", picture())})
    assert forged.status_code == 403
    hidden = Page(browser.get(PAGE)).hidden(PICTURE)
    assert browser.post(PICTURE, data=hidden).status_code == 415
    other_field = browser.post(PICTURE, data=hidden, files={"other": ("me.png", picture())})
    assert other_field.status_code == 422
    too_large = browser.post(PICTURE, data=hidden, files={"picture": ("me.png", b"x" * (9 * 1024 * 1024))})
    assert too_large.status_code == 413
    assert shown(browser, ada.id).headers["content-type"] == "image/svg+xml"


@pytest.mark.one_engine
def test_organization_has_a_picture_until_it_is_deleted(hub: RunningHub, ada: User, browser: httpx.Client) -> None:
    acme = create_organization(hub, "acme", ada)
    page = "/organizations/acme/settings/profile"
    action = "/organizations/acme/settings/picture"
    assert upload(browser, picture(), page, action).headers["location"] == page
    assert shown(browser, acme.id).headers["content-type"] == "image/webp"
    log = browser.get("/organizations/acme/settings/audit-log").text
    assert "changed the picture" in log
    deleted = submit(browser, "/organizations/acme/settings/delete", name="acme")
    assert deleted.status_code == 303, deleted.text
    assert shown(browser, acme.id).headers["content-type"] == "image/svg+xml"


@pytest.mark.one_engine
def test_app_has_a_logo_on_the_consent_page(hub: RunningHub, ada: User, browser: httpx.Client) -> None:
    app = create_app(hub, ada)
    page = f"/settings/applications/{app.id}"
    assert upload(browser, picture(mode="RGBA"), page, f"{page}/logo").headers["location"] == page
    address = f"/avatars/app-{app.id}/"
    assert address in browser.get(page).text
    consent = browser.get(app.address())
    assert consent.status_code == 200, consent.text
    logo = consent.text.split(f'src="{address}')[1].split('"')[0]
    assert opened(browser.get(address + logo).content).size == (256, 256)
    assert upload(browser, b"x", page, f"{page}/logo").status_code == 422
    assert submit(browser, page, f"{page}/logo/delete").status_code == 303
    assert browser.get(address + logo).status_code == 404


@pytest.mark.one_engine
def test_user_has_few_uploads_in_progress(hub: RunningHub, browser: httpx.Client) -> None:
    """Each waiting upload takes megabytes of memory. Those of other users do not wait for them."""
    hidden = Page(browser.get(PAGE)).hidden(PICTURE)
    with ThreadPoolExecutor(16) as threads, browser_of(hub, create_user(hub, "bob")) as other:
        sent = [
            threads.submit(browser.post, PICTURE, data=hidden, files={"picture": ("me.png", picture())})
            for _ in range(16)
        ]
        assert upload(other, picture()).status_code == 303
        statuses = [one.result().status_code for one in sent]
    assert set(statuses) == {303, 503}
