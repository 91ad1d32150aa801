"""The OpenAPI document is generated from the route table; a fuzzer checks the answers against it."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.testbuild import TABLE
from tests.protocol.contract import SNAPSHOT, product_document

pytestmark = pytest.mark.one_engine


def test_contract_matches_the_served_document(hub: RunningHub) -> None:
    """A change here is a change for every client, to be made on purpose."""
    served, agreed = product_document(hub), json.loads(SNAPSHOT.read_text())
    changed = [
        path
        for path in {**served["paths"], **agreed["paths"]}
        if served["paths"].get(path) != agreed["paths"].get(path)
    ]
    assert served == agreed, f"differs from contract/openapi.json at {changed or 'its shapes'}; run: make contract"


def test_every_route_for_programs_is_documented(hub: RunningHub) -> None:
    document = httpx.get(f"{hub.url}/api/openapi.json").json()
    for path in ("/healthz", "/readyz", "/oauth/jwks", "/api/agent-harnesses", "/api/openapi.json"):
        assert path in document["paths"]
    assert "/theme" not in document["paths"], "pages are for people"
    assert document["servers"] == [{"url": hub.url}]


_EXAMPLES = {"granian": settings.default.max_examples // 20, "uvicorn": 1}


# Fewer on the second server: only the outermost layer differs, which has its own tests.
@pytest.mark.parametrize(("server", "examples"), _EXAMPLES.items(), ids=_EXAMPLES)
def test_answers_match_the_document(server: str, examples: int, sqlite_template: Path, tmp_path: Path) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(settings_for(url, tmp_path, server=server)) as hub:
        hub.call(lambda opened: opened.db.write(lambda tx: tx.exec(TABLE)))
        # A NUL in a text is rejected everywhere (O56), which JSON Schema cannot express.
        config = schemathesis.Config.from_dict({"generation": {"allow-x00": False}})
        schema = schemathesis.openapi.from_url(f"{hub.url}/api/openapi.json", config=config)
        # The test build's other routes sleep, break and overflow on purpose; those of datasets and spaces are generated
        # by the same code as those of models.
        kept = schema.exclude(path_regex="/test(?!/(write|names|who|part))|^/(api/)?(datasets|spaces)/")
        operations = [result.ok() for result in kept.get_all_operations()]
        assert len(operations) >= 8
        with requests.Session() as session:
            for operation in operations:
                fuzzed(operation, examples, session)


def fuzzed(operation: Any, examples: int, session: requests.Session) -> None:
    @given(case=operation.as_strategy())
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    def examine(case: schemathesis.Case) -> None:
        response = case.call(session=session)
        assert response.status_code < 500, response.text
        # A well-formed but unknown code, token or client is 400 by RFC 6749, which a schema cannot express.
        judged_by_rfc = operation.path in ("/oauth/token", "/oauth/revoke", "/oauth/introspect", "/oauth/device")
        excluded = [positive_data_acceptance] if judged_by_rfc else []
        case.validate_response(response, excluded_checks=excluded)

    examine()
