"""Builds the documentation as a static site: `python -m tests.docs.site build/docs`, or `make docs`.

The pages are the responses of a hub with an empty database, without a socket. Links between pages become relative, and
links to other pages of a hub, which a static site does not have, become text. A link to a page or an anchor that does
not exist is an error. Addresses outside are listed in `outside.txt` and not requested. The search runs in the browser
(`search.js`), on an index of all sections; it needs no server, so it works for files on a disk too.
"""

import argparse
import contextlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from html import unescape
from pathlib import Path
from posixpath import dirname, relpath
from typing import Any
from urllib.parse import urlsplit

import httpx
from anyio import to_thread
from anyio.from_thread import start_blocking_portal

from hubgate import __version__
from hubgate.server import settings
from hubgate.server.app import build_app
from hubgate.server.resources import open_hub
from hubgate.server.startup import prepared
from hubgate.server.web.pages.api_reference.routes import read_reference
from hubgate.server.web.pages.docs.searching import section_entries

Get = Callable[[str], httpx.Response]
ROOT = Path(__file__).parents[2]
INDEX = "/docs"
BASE_URL = "https://hub.example"
_HREF = re.compile(r'<a ([^>]*?)href="([^"]*)"([^>]*)>(.*?)</a>', re.DOTALL)
SEARCH = f"{INDEX}/search"
_HEADER = """<header class="site-header"><div class="bar"><a class="brand" href="{index}">
<strong>hubgate</strong> <span class="brand-host">{version}</span></a>
<form class="filter" method="get" action="{search}" role="search" aria-label="Documentation">
<label class="unseen" for="docs-search">Search the documentation</label>
<input class="input" id="docs-search" name="q" type="search" placeholder="Search" autocomplete="off" maxlength="200">
<button class="button">Search</button></form></div></header>"""
_RESULTS = f"""<p class="note note-warn" id="without-script">This search needs JavaScript. Without it, use the
<a href="{INDEX}">index of all pages</a>, or the search of a running hub under <code>/docs</code>.</p>
<p class="caption" id="search-status" role="status"></p>
<ol class="plain doc-results" id="results"></ol>
"""
_SCRIPT = '<script src="search.js" defer></script>\n</head>'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    pages, outside = build(folder)
    print(f"{pages} pages in {folder}, {outside} addresses outside in outside.txt")


def build(folder: Path) -> tuple[int, int]:
    """Write the site, and return the numbers of pages and of addresses outside. Exits if a link is broken."""
    with hub_without_socket() as get:
        pages = crawl(get)
        assets = {address: get(address) for address in assets_of(pages)}
        search = search_page(get(SEARCH).text, pages)
        openapi_document = get("/api/openapi.json").json()
    problems = broken_links(pages)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        sys.exit(f"{len(problems)} broken links")
    shutil.rmtree(folder, ignore_errors=True)
    for address, html in pages.items():
        write(folder / file_of(address), static_page(address, html, pages).encode())
    for address, answer in assets.items():
        write(folder / address.removeprefix("/"), answer.raise_for_status().content)
    write(folder / file_of(SEARCH), search.encode())
    write(folder / "search-index.js", search_index(pages, openapi_document).encode())
    write(folder / "search.js", Path(__file__).with_name("search.js").read_bytes())
    outside = outside_links(pages)
    write(folder / "outside.txt", "".join(f"{address}\n" for address in outside).encode())
    return len(pages), len(outside)


@contextlib.contextmanager
def hub_without_socket() -> Iterator[Get]:
    """A hub as it is installed, with an empty database: the hubs of tests have routes that exist only in tests."""
    with tempfile.TemporaryDirectory() as data, start_blocking_portal() as portal:
        values = settings.load({"data_dir": data, "base_url": BASE_URL}, {})
        # In a thread without an event loop: that of a browser may run in this one.
        with contextlib.ExitStack() as stack:
            stack.callback(portal.call, to_thread.run_sync, (opened := contextlib.ExitStack()).close)
            portal.call(to_thread.run_sync, opened.enter_context, prepared(values))
            hub = portal.call(open_hub, values)
            stack.callback(portal.call, hub.close)
            client = httpx.AsyncClient(transport=httpx.ASGITransport(build_app(hub)), base_url=BASE_URL)
            stack.callback(portal.call, client.aclose)
            yield lambda address: portal.call(client.get, address)


def crawl(get: Get) -> dict[str, str]:
    """All pages of the documentation by address, as a visitor sees them."""
    pages: dict[str, str] = {}
    waiting = [INDEX]
    while waiting:
        address = waiting.pop()
        if address in pages:
            continue
        response = get(address)
        # A broken link is found by `broken_links`, which knows the page it is on.
        if response.status_code == 404:
            continue
        pages[address] = response.raise_for_status().text
        waiting += [target for link in links_of(pages[address]) if is_page(target := urlsplit(link).path)]
    return pages


def is_page(path: str) -> bool:
    inside = path.startswith(f"{INDEX}/") and path != f"{INDEX}/search" and not is_download(path)
    return path == INDEX or inside


def is_download(path: str) -> bool:
    return path.startswith(f"{INDEX}/") and path.endswith(".json")


def links_of(html: str) -> list[str]:
    return [unescape(link) for link in re.findall(r'<a [^>]*?href="([^"]*)"', html)]


def ids_of(html: str) -> list[str]:
    return [unescape(name) for name in re.findall(r'\sid="([^"]+)"', html)]


def assets_of(pages: Mapping[str, str]) -> set[str]:
    """Styles, scripts and pictures, and files to download."""
    found = {found for html in pages.values() for found in re.findall(r'(?:src|href)="(/static/[^"]+)"', html)}
    return found | {link for html in pages.values() for link in links_of(html) if is_download(link)}


def broken_links(pages: Mapping[str, str]) -> list[str]:
    ids = {address: set(ids_of(html)) for address, html in pages.items()}
    found = []
    for address, html in pages.items():
        for link in links_of(html):
            parts = urlsplit(link)
            target = parts.path or address
            if parts.scheme or parts.netloc or not is_page(target):
                continue
            if target not in pages:
                found.append(f"{address}: {link} does not exist")
            elif parts.fragment and parts.fragment not in ids[target]:
                found.append(f"{address}: {link} has no such anchor")
    return found


def outside_links(pages: Mapping[str, str]) -> list[str]:
    links = {link for html in pages.values() for link in links_of(html)}
    return sorted(
        link for link in links if urlsplit(link).scheme in ("http", "https") and not link.startswith(BASE_URL)
    )


def file_of(address: str) -> str:
    """The file of a page. A page whose address begins those of others is the index of a folder."""
    inside = address.removeprefix(INDEX).strip("/")
    return f"{inside}/index.html" if inside == "api" else f"{inside}.html" if inside else "index.html"


def static_page(address: str, html: str, pages: Mapping[str, str]) -> str:
    here = dirname(file_of(address)) or "."

    def link(match: re.Match[str]) -> str:
        before, target, after, text = match.groups()
        parts = urlsplit(unescape(target))
        if parts.scheme or parts.netloc or not parts.path:
            return match[0]
        if is_download(parts.path):
            return f'<a {before}href="{relpath(parts.path.removeprefix("/"), here)}"{after}>{text}</a>'
        if parts.path not in pages:
            return f"<span>{text}</span>"
        anchor = f"#{parts.fragment}" if parts.fragment else ""
        return f'<a {before}href="{relpath(file_of(parts.path), here)}{anchor}"{after}>{text}</a>'

    html = _HREF.sub(link, html)
    html = re.sub(r'(src|href)="/(static/[^"]+)"', lambda match: f'{match[1]}="{relpath(match[2], here)}"', html)
    html = re.sub(r'<footer.*?</footer>|<form class="filter".*?</form>', "", html, flags=re.DOTALL)
    places = {"index": relpath("index.html", here), "search": relpath(file_of(SEARCH), here)}
    header = _HEADER.format(version=__version__, **places)
    return re.sub(r"<header.*?</header>", lambda _: header, html, flags=re.DOTALL)


def search_page(html: str, pages: Mapping[str, str]) -> str:
    """The hub's page without a search text, whose script shows the results."""
    hint = re.compile(r"<p>Enter words that must occur.*?</p>", re.DOTALL)
    page = static_page(SEARCH, hint.sub(lambda _: _RESULTS, html, count=1), pages)
    return page.replace("</head>", _SCRIPT, 1)


def search_index(pages: Mapping[str, str], openapi_document: dict[str, Any]) -> str:
    """A script that sets a list of sections and operations: file, title of the page, heading and text."""
    rows = []
    for entry in (*section_entries(BASE_URL), *read_reference(openapi_document).entries):
        path, _, anchor = entry.address.partition("#")
        if path in pages:
            rows.append([file_of(path) + (f"#{anchor}" if anchor else ""), entry.page, entry.heading, entry.text])
    return f"window.docsIndex = {json.dumps(rows, ensure_ascii=False)};\n"


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    main()
