"""The API reference: an index of all operations, and a page for each subject, which match the OpenAPI document."""

import gzip
import json
import re
from html import unescape
from itertools import pairwise
from typing import Any

import httpx
import pytest
from tests.bed.running_hub import RunningHub
from tests.protocol.contract import SNAPSHOT

from hubgate.server.web.pages.api_reference.operations import shapes
from hubgate.server.web.pages.api_reference.subjects import SUBJECTS, is_listed_with_models, subjects

pytestmark = pytest.mark.one_engine

INDEX = "/docs/api"
PAGE_BUDGET = 25_000


def pages_of(hub: RunningHub) -> dict[str, str]:
    """The index and the page of each subject that it links to, in order, by address."""
    with hub.client() as client:
        index = client.get(INDEX).text
        addresses = re.findall(rf'<h2 id="[\w-]+"><a href="({INDEX}/[\w-]+)">', index)
        assert len(addresses) == len(set(addresses)) >= 10
        return {INDEX: index} | {address: client.get(address).text for address in addresses}


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub("<[^>]+>", "", html.replace("<wbr>", ""))).split())


def element(page: str, anchor: str) -> str:
    """The text of the row or the article with this id."""
    (found,) = re.findall(rf'<(?P<tag>li|article)[^>]* id="{anchor}">(.*?)</(?P=tag)>', page, re.DOTALL)
    return text_of(found[1])


def test_every_operation_is_on_the_index_and_on_the_page_of_its_subject(hub: RunningHub) -> None:
    document = httpx.get(f"{hub.url}/api/openapi.json").json()
    pages = pages_of(hub)
    for path, methods in document["paths"].items():
        if is_listed_with_models(path, document):
            assert path.startswith(("/api/datasets", "/api/spaces"))
            continue
        for method, described in methods.items():
            anchor = described["operationId"]
            (address,) = re.findall(rf'"({INDEX}/[\w-]+)#{anchor}"', pages[INDEX])
            assert element(pages[INDEX], anchor) == f"{method.upper()} {path} {described['summary']}"
            needs = "Needs a token " if "security" in described else ""
            start = f"{method.upper()} {path} {needs}{described['summary']} "
            assert element(pages[address], anchor).startswith(start)


def test_operations_on_models_exist_for_other_types_too(hub: RunningHub) -> None:
    pages = pages_of(hub)
    for address, page in pages.items():
        listed = address != INDEX and "/<wbr>api/<wbr>models" in page
        assert ("exist under /api/datasets and /api/spaces too" in page) == listed, address


def test_every_link_leads_to_an_element(hub: RunningHub) -> None:
    pages = pages_of(hub)
    ids = {address: re.findall(r' id="([^"]+)"', page) for address, page in pages.items()}
    for address, page in pages.items():
        assert len(ids[address]) == len(set(ids[address]))
        links = re.findall(rf'href="((?:{INDEX}[^"#]*)?)(?:#([^"]+))?"', page)
        assert len(links) > 20
        for there, anchor in links:
            assert not anchor or anchor in ids[there or address], (address, there, anchor)
            assert there in pages or not there


def test_subject_links_to_the_index_and_its_neighbours(hub: RunningHub) -> None:
    pages = pages_of(hub)
    _, *addresses = pages
    for before, after in pairwise(addresses):
        assert f'rel="next" href="{after}"' in pages[before]
        assert f'rel="prev" href="{before}"' in pages[after]
    assert 'rel="prev"' not in pages[addresses[0]]
    assert 'rel="next"' not in pages[addresses[-1]]
    for address in addresses:
        assert f'<p class="crumb"><a href="{INDEX}">API</a></p>' in pages[address]
        assert pages[address].count(f'<a href="{address}" aria-current="page">') == 2, "for desktop and phone"


def test_every_page_is_within_the_budget(hub: RunningHub) -> None:
    sizes = {address: len(gzip.compress(page.encode())) for address, page in pages_of(hub).items()}
    assert max(sizes.values()) < PAGE_BUDGET, sizes


def test_unknown_subject_is_a_404_page(hub: RunningHub) -> None:
    response = httpx.get(f"{hub.url}{INDEX}/nothing")
    assert response.status_code == 404
    assert response.headers["content-type"].startswith("text/html")
    assert "The API reference has no such subject." in response.text


def test_every_route_has_one_subject() -> None:
    """A new kind of route needs a subject: add its path to `SUBJECTS`."""
    document = json.loads(SNAPSHOT.read_text())
    for path in document["paths"]:
        assert len([subject.slug for subject in SUBJECTS if subject.includes(path)]) == 1, path
    assert [subject.slug for subject in subjects(document)] == [subject.slug for subject in SUBJECTS]


def test_operation_without_a_subject_is_listed_last() -> None:
    operation = {"operationId": "x", "summary": "x", "responses": {}}
    paths = ["/unheard-of", "/healthz", "/api/settings/webhooks", "/api/organizations/{name}/settings/webhooks/{id}"]
    servers = [{"url": "https://hub.example"}]
    found = subjects({"servers": servers, "paths": {path: {"get": operation} for path in paths}})
    assert [(subject.title, len(subject.operations)) for subject in found] == [
        ("Webhooks and events", 2),
        ("Health and compatibility", 1),
        ("Other", 1),
    ]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "string"),
        ({"type": "array", "items": {"$ref": "#/components/schemas/Jwk"}}, "list of Jwk"),
        ({"type": "array"}, "list"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer or null"),
        ({"type": ["string", "null"]}, "string or null"),
        ({"enum": ["read", "write"]}, '"read" or "write"'),
        ({"const": True}, "true"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "object of number"),
        ({"type": "object"}, "object"),
        ({}, "any value"),
    ],
)
def test_types_are_described_in_words(schema: dict[str, Any], words: str) -> None:
    document = {"components": {"schemas": {"Thing": {"properties": {"field": schema}}}}}
    (shape,) = shapes(document)
    assert "".join(piece.text for piece in shape.fields[0].kind) == words
