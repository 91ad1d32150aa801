"""The documentation at `/docs`: every file of `docs/` is a page, with working links, and can be searched."""

import gzip
import os
import re
from html import unescape
from pathlib import Path

import httpx
import pytest
from tests.bed.apps import create_app
from tests.bed.people import browser_of, create_user
from tests.bed.running_hub import RunningHub
from tests.docs.site import ROOT, broken_links, crawl, file_of, hub_without_socket, ids_of, links_of, static_page

PAGE_BUDGET = 25_000


def test_every_file_is_a_page_of_a_section(sqlite_hub: RunningHub) -> None:
    with sqlite_hub.client() as client:
        index = client.get("/docs").text
        for path in (ROOT / "docs").rglob("*.md"):
            group = path.parent.name if path.parent.name != "docs" else "guides"
            address = f"/docs/{group}/{path.stem}"
            assert f'href="{address}"' in index, f"list {path.name} in web/pages/docs/navigation.py"


def test_links_work_and_pages_are_within_the_budget(sqlite_hub: RunningHub) -> None:
    with sqlite_hub.client() as client:
        pages = crawl(client.get)
    assert len(pages) > 60
    assert broken_links(pages) == []
    for address, html in pages.items():
        ids = ids_of(html)
        assert len(ids) == len(set(ids)), address
        assert not re.search(r"<style|\sstyle=|\son\w+=", html), address
        assert html.count("<h1") == 1, address
        # The reference of commands and the sign-in page have their own length, and still fit.
        assert len(gzip.compress(html.encode())) < PAGE_BUDGET, address


def article(page: str) -> str:
    return page.partition('<article class="doc-text">')[2].partition("</article>")[0]


def test_unknown_pages_are_404(sqlite_hub: RunningHub) -> None:
    for address in ("/docs/guides/nothing", "/docs/guides/..%2FREADME", "/docs/reference/nothing", "/docs/nothing"):
        response = httpx.get(sqlite_hub.url + address)
        assert response.status_code == 404, address
        assert response.headers["content-type"].startswith("text/html")


def test_addresses_of_the_hub_are_filled_in(sqlite_hub: RunningHub) -> None:
    with sqlite_hub.client() as client:
        pages = crawl(client.get)
    for address, html in pages.items():
        assert "https://hub.example" not in html, address
        assert not re.search(r"\$hub\b", html), address


def test_samples_have_the_client_id_of_the_readers_app(sqlite_hub: RunningHub) -> None:
    ada, bob = create_user(sqlite_hub, "ada"), create_user(sqlite_hub, "bob")
    first = create_app(sqlite_hub, ada, name="First")
    sqlite_hub.clock.advance(1)
    second, foreign = create_app(sqlite_hub, ada, name="Second"), create_app(sqlite_hub, bob, name="Foreign")
    page = "/docs/guides/device"
    with browser_of(sqlite_hub) as visitor:
        assert "your-client-id" in visitor.get(page).text
        assert "your-client-id" in visitor.get(f"{page}?app={first.id}").text
    with browser_of(sqlite_hub, ada) as browser:
        assert first.id in article(browser.get(page).text)
        chosen = article(browser.get(f"{page}?app={second.id}").text)
        assert second.id in chosen
        assert "your-client-id" not in chosen
        assert foreign.id not in article(browser.get(f"{page}?app={foreign.id}").text)


@pytest.mark.parametrize(
    ("query", "address"),
    [
        ("HUBGATE_TRUSTED_PROXIES", "/docs/guides/settings"),
        ("token exchange dry run", "/docs/guides/token-exchange#dry-run"),
        ("sqlite write savepoint", "/docs/guides/inside#a-write"),
        ("insufficient_scope", "/docs/reference/errors"),
        ("create webhook", "/docs/api/webhooks#"),
        ("POST /oauth/device", "/docs/api/sign-in#"),
        ("idTokenSignedResponseAlg", "/docs/api/apps#shape-"),
    ],
)
def test_search_finds_sections_and_operations(sqlite_hub: RunningHub, query: str, address: str) -> None:
    with sqlite_hub.client() as client:
        page = client.get("/docs/search", params={"q": query}).text
        results = re.findall(r'<li>\s*<a href="([^"]+)">', page.partition("doc-results")[2])
        assert any(result.startswith(address) for result in results), results
        for result in results:
            shown = client.get(result.partition("#")[0]).text
            assert "#" not in result or result.partition("#")[2] in ids_of(shown)


def test_search_shows_what_was_typed_as_text(sqlite_hub: RunningHub) -> None:
    with sqlite_hub.client() as client:
        page = client.get("/docs/search", params={"q": '"><script>alert(1)</script>'}).text
        assert "<script>alert" not in page
        assert "Nothing matches." in page
        assert "Nothing matches." not in client.get("/docs/search").text
        assert "Nothing matches." in client.get("/docs/search", params={"q": "x" * 5000}).text


def test_variants_of_a_request_are_tabs(sqlite_hub: RunningHub) -> None:
    page = httpx.get(f"{sqlite_hub.url}/docs/guides/verify-deliveries").text
    group = re.findall(r'<fieldset class="tabs">.*?</fieldset>', page, re.DOTALL)[0]
    assert re.findall(r"<label[^>]*>([^<]+)<", group) == ["Python", "JavaScript", "Go", "Java", "Rust"]
    assert group.count("checked") == 1
    assert group.count('<div class="variant">') == 5, "without styles, all variants are visible"
    assert '<span class="t-k">import</span>' in unescape(group)


def test_static_pages_link_only_to_each_other() -> None:
    with hub_without_socket() as get:
        pages = crawl(get)
    files = {file_of(address) for address in pages}
    for address in ("/docs", "/docs/api/webhooks", "/docs/guides/verify-deliveries"):
        html = static_page(address, pages[address], pages)
        here = Path(file_of(address)).parent
        targets = [link.partition("#")[0] for link in links_of(html)]
        inside = [target for target in targets if target and not target.startswith("https://")]
        assert len(inside) > 10
        for target in inside:
            assert os.path.normpath(here / target) in files, (address, target)
        assert not re.search(r'(?:href|src|action)="/', html), address


def test_a_broken_link_is_named() -> None:
    pages = {"/docs": '<a href="/docs/a">a</a><a href="/docs/b#x">b</a><a href="/login">c</a>', "/docs/b": '<p id="y">'}
    assert broken_links(pages) == ["/docs: /docs/a does not exist", "/docs: /docs/b#x has no such anchor"]
