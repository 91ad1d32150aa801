"""Builds the documentation as a static site: `python -m tests.docs.site build/docs`, or `make docs`.

The pages are the responses of a hub with an empty database, without a socket. Links between pages become relative, and
links to other pages of a hub, which a static site does not have, become text. A link to a page or an anchor that does
not exist is an error. Addresses outside are listed in `outside.txt` and not requested.
"""

import argparse
import contextlib
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from html import unescape
from pathlib import Path
from posixpath import dirname, relpath
from urllib.parse import urlsplit

import httpx
from anyio import to_thread
from anyio.from_thread import start_blocking_portal

from hubgate import __version__
from hubgate.server import settings
from hubgate.server.app import build_app
from hubgate.server.resources import open_hub
from hubgate.server.startup import prepared

Get = Callable[[str], httpx.Response]
ROOT = Path(__file__).parents[2]
INDEX = "/docs"
BASE_URL = "https://hub.example"
_HREF = re.compile(r'<a ([^>]*?)href="([^"]*)"([^>]*)>(.*?)</a>', re.DOTALL)
_HEADER = """<header class="site-header"><div class="bar"><a class="brand" href="{index}">
<strong>hubgate</strong> <span class="brand-host">{version}</span></a></div></header>"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    with hub_without_socket() as get:
        pages = crawl(get)
        assets = {address: get(address) for address in assets_of(pages)}
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
    outside = outside_links(pages)
    write(folder / "outside.txt", "".join(f"{address}\n" for address in outside).encode())
    print(f"{len(pages)} pages in {folder}, {len(outside)} addresses outside in outside.txt")


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
    header = _HEADER.format(index=relpath("index.html", here), version=__version__)
    html = re.sub(r"<header.*?</header>", lambda _: header, html, flags=re.DOTALL)
    return re.sub(r'<footer.*?</footer>|<form class="filter".*?</form>', "", html, flags=re.DOTALL)


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    main()
