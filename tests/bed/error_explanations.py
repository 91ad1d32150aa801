"""The page that explains an OAuth error to the owner of the app."""

import re

import httpx
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub

NO_DIFFERENCE = "None of these values differs from the registration. The sentence at the top names the cause."


def path_of(hub: RunningHub, error_uri: str) -> str:
    assert error_uri.startswith(f"{hub.url}/oauth/explain/")
    return error_uri.removeprefix(hub.url)


def explanation_page(browser: httpx.Client, path: str) -> str:
    """The text of the page, once it exists: the hub stores it in the background."""
    until(lambda: browser.get(path).status_code == 200)
    return browser.get(path).text


def row(page: str, label: str) -> tuple[str, str]:
    """The sent and the registered value of a row, without HTML tags except `<mark>`."""
    found = re.search(rf'<th scope="row">{re.escape(label)}[^<]*</th><td>(.*?)</td><td>(.*?)</td>', page, re.DOTALL)
    assert found, page
    sent, registered = found.groups()
    return _side(sent, "Sent"), _side(registered, "Registered")


def _side(cell: str, caption: str) -> str:
    prefix = f'<span class="caption phone">{caption}</span>'
    assert cell.startswith(prefix), cell
    text = cell.removeprefix(prefix).replace("<wbr>", "")
    return " ".join(re.sub(r"</?(?!/?mark)[a-z][^>]*>", " ", text).split())
