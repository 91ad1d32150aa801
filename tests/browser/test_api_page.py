"""The API page matches the OpenAPI document."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser
from tests.browser.stage import staged

from hubgate.server.web.pages.api_reference import is_listed_with_models, shapes, subjects


@pytest.fixture(scope="module")
def stage() -> Iterator[str]:
    with staged() as stage:
        yield stage.url


@pytest.mark.browser
def test_every_operation_is_shown_and_every_link_works(browser: Browser, stage: str) -> None:
    document = httpx.get(f"{stage}/api/openapi.json").json()
    page = browser.new_page()
    try:
        page.goto(f"{stage}/docs/api")
        for path, methods in document["paths"].items():
            if is_listed_with_models(path, document):
                assert path.startswith(("/api/datasets", "/api/spaces"))
                continue
            for method, described in methods.items():
                operation = page.locator(f"#{described['operationId']}")
                needs = ["Needs", "a", "token"] if "security" in described else []
                assert operation.locator("h3").inner_text().split() == [method.upper(), path, *needs]
                assert described["summary"] in operation.inner_text()
        for link in set(page.locator("a[href^='#']").evaluate_all("links => links.map(link => link.hash)")):
            assert page.locator(f"[id='{link[1:]}']").count() == 1, link
    finally:
        page.close()


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


def test_sections_follow_the_paths_and_housekeeping_is_last() -> None:
    paths = [
        "/healthz",
        "/api/settings/webhooks",
        "/api/models/{namespace}",
        "/api/settings/webhooks/{id}",
        "/oauth/token",
        "/api/access-requests",
    ]
    operation = {"operationId": "x", "summary": "x", "responses": {}}
    found = subjects({"paths": {path: {"get": operation} for path in paths}})
    assert [(subject.title, len(subject.operations)) for subject in found] == [
        ("Webhooks", 2),
        ("Models, datasets and spaces", 1),
        ("Sign-in for apps", 1),
        ("Access requests", 1),
        ("Health", 1),
    ]
