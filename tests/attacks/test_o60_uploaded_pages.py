"""O60: an uploaded page, picture or script never runs in the hub's origin, even if a signed-in user opens it."""

import contextlib
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Error
from tests.bed.people import api, browser_of, create_token, create_user
from tests.bed.repos import create_commit, create_repo, send_large, send_lines
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.browser

RUN = "document.title='pwned'; fetch('/pwned'); new Image().src='/pwned'; location='/pwned'"
HTML = f"<!doctype html><title>t</title><script>{RUN}</script><img src=x onerror=\"{RUN}\"><meta http-equiv=refresh content='0;/pwned'><form id=f action=/pwned method=post></form><iframe src='javascript:parent.{RUN}'></iframe>"  # noqa: E501
SVG = f'<svg xmlns="http://www.w3.org/2000/svg" onload="{RUN}"><script>{RUN}</script><a href="javascript:{RUN}">x</a></svg>'  # noqa: E501
XHTML = f'<html xmlns="http://www.w3.org/1999/xhtml"><head><script>{RUN}</script></head><body onload="{RUN}"/></html>'
XML = f'<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="evil.xsl"?><x><s xmlns="http://www.w3.org/1999/xhtml"><script>{RUN}</script></s></x>'
XSL = f'<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/"><html><script>{RUN}</script></html></xsl:template></xsl:stylesheet>'  # noqa: E501
PDF = f"%PDF-1.4\n1 0 obj<</Type/Catalog/OpenAction<</S/JavaScript/JS({RUN})>>>>endobj\ntrailer<</Root 1 0 R>>"
MHTML = (
    f"MIME-Version: 1.0\nContent-Type: multipart/related; boundary=x\n\n--x\nContent-Type: text/html\n\n{HTML}\n--x--"
)
BY_ENDING = {"svg": SVG, "svgz": SVG, "xhtml": XHTML, "xht": XHTML, "xml": XML, "xsl": XSL, "xslt": XSL, "rdf": XML,
             "atom": XML, "pdf": PDF, "mht": MHTML, "mhtml": MHTML, "js": RUN, "mjs": RUN}  # fmt: skip
ENDINGS = (*BY_ENDING, "html", "htm", "HTML", "shtml", "html.gz", "php", "hta", "htc", "swf", "wasm", "css", "md",
           "txt", "json", "png", "vtt", "eml", "", "html ", "html.", "svg.html.unknown")  # fmt: skip
# One of each kind, because a browser is slow.
OPENED = ("html", "xhtml", "svg", "xml", "xsl", "pdf", "mhtml", "js", "txt", "json", "css", "png", "unknown")
LARGE = ("large.html", "large.svg")


def test_o60_uploaded_file_does_not_run_in_the_hubs_origin(sqlite_hub: RunningHub, browser: Browser) -> None:
    hub = sqlite_hub
    ada = create_user(hub, "ada")
    files = {f"evil.{ending}": BY_ENDING.get(ending, HTML).encode() for ending in OPENED}
    with api(hub, create_token(hub, ada)) as client:
        create_repo(client, "tiny", private=True)
        create_commit(client, "ada/tiny", files)
        for name in LARGE:
            content = BY_ENDING.get(name.rpartition(".")[2], HTML).encode()
            oid = send_large(client, "ada/tiny", content)
            value = {"path": name, "algo": "sha256", "oid": oid, "size": len(content)}
            assert send_lines(client, "ada/tiny", ("lfsFile", value)).status_code == 200
    with browser_of(hub, ada) as signed_in:
        cookie = signed_in.cookies["token"]
    context = browser.new_context(base_url=hub.url)
    try:
        context.add_cookies([{"name": "token", "value": cookie, "url": hub.url}])
        page = context.new_page()
        page.on("dialog", lambda dialog: dialog.dismiss())
        asked: list[str] = []
        context.on("request", lambda request: asked.append(urlsplit(request.url).path))
        for name in (*files, *LARGE):
            for verb in ("resolve", "raw") if name.endswith((".html", ".svg", ".xml")) else ("resolve",):
                address = f"/ada/tiny/{verb}/main/{name}"
                asked.clear()
                # A download ends the navigation.
                with contextlib.suppress(Error):
                    answer = page.goto(address)
                    assert answer is not None
                    assert answer.status == 200, address
                    assert page.title() != "pwned", address
                    assert page.evaluate("window.origin") == "null", address
                assert {path for path in asked if path != "/favicon.ico"} == {address}, asked
        # Control: served as a page, the same file runs with the user's session.
        context.route("**/as-a-page", lambda route: route.fulfill(body=HTML, content_type="text/html"))
        page.goto("/as-a-page")
        page.wait_for_url("**/pwned")
    finally:
        context.close()


def test_o60_content_types_are_inert(sqlite_hub: RunningHub) -> None:
    hub = sqlite_hub
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        files = {f"evil.{ending}".removesuffix("."): b"<script>" for ending in ENDINGS}
        create_commit(ada, "ada/tiny", files)
        for name in files:
            for verb in ("resolve", "raw"):
                answer = ada.get(f"/ada/tiny/{verb}/main/{name}")
                kind = answer.headers["content-type"].partition(";")[0]
                active = ("html", "xml", "svg", "script", "pdf", "xslt", "message/", "multipart/", "shockwave", "hta")
                assert not any(word in kind for word in active), (name, kind)
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
                assert answer.headers["content-disposition"].startswith("inline; ")
                assert "set-cookie" not in answer.headers
