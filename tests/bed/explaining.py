"""The page that explains a refusal to the owner of the app."""

import re

import httpx
from tests.bed.processes import until
from tests.bed.running import RunningHub

ELSEWHERE = "Nothing here differs from what is registered. The cause lies elsewhere: the sentence at the top names it."


def path_of(hub: RunningHub, error_uri: str) -> str:
    assert error_uri.startswith(f"{hub.url}/oauth/explain/")
    return error_uri.removeprefix(hub.url)


def explained(browser: httpx.Client, path: str) -> str:
    """The owner's page, once it is there: it is written beside the answer."""
    until(lambda: browser.get(path).status_code == 200)
    return browser.get(path).text


def row(page: str, label: str) -> tuple[str, str]:
    """Sent and registered, with nothing but the marks left in."""
    found = re.search(rf'<th scope="row">{re.escape(label)}[^<]*</th><td>(.*?)</td><td>(.*?)</td>', page, re.DOTALL)
    assert found, page
    sent, registered = found.groups()
    return _side(sent, "Sent"), _side(registered, "Registered")


def _side(cell: str, on_a_phone: str) -> str:
    named = f'<span class="caption phone">{on_a_phone}</span>'
    assert cell.startswith(named), cell
    text = cell.removeprefix(named).replace("<wbr>", "")
    return " ".join(re.sub(r"</?(?!/?mark)[a-z][^>]*>", " ", text).split())
