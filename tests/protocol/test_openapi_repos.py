"""The documented routes of repos, fuzzed where there is something to find: a repo, and its owner's token."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance
from tests.bed.people import api, make_token, make_user
from tests.bed.repos import commit, make_repo
from tests.bed.running import RunningHub

# Those of datasets and spaces are made by the same lines.
ROUTES = r"^/api/(models/\{namespace\}|repos/|validate-yaml|models$)"
KNOWN = {
    "namespace": st.just("ada"),
    "repo": st.just("tiny"),
    "rev": st.sampled_from(["main", "refs/pr/1", "HEAD", "v1"]) | st.text(min_size=1, max_size=20),
    "rest": st.sampled_from(["main", "main/d", "v1/d/f", "refs/pr/1"]) | st.text(min_size=1, max_size=20),
    "branch": st.text(min_size=1, max_size=20),
    "num": st.just("1") | st.text(min_size=1, max_size=12),
}


@pytest.fixture
def fuzzed_hub(on_sqlite: RunningHub) -> Iterator[tuple[RunningHub, str]]:
    token = make_token(on_sqlite, make_user(on_sqlite, "ada"))
    with api(on_sqlite, token) as ada:
        make_repo(ada, "tiny")
        assert commit(ada, "ada/tiny", {"d/f": b"x", "README.md": b"---\nlicense: mit\n---\n"}).status_code == 200
        assert ada.post("/api/models/ada/tiny/tag/main", json={"tag": "v1"}).status_code == 200
        assert commit(ada, "ada/tiny", {"d/f": b"y"}, query="?create_pr=1").status_code == 200
        yield on_sqlite, token
        assert ada.get("/api/models/ada/tiny/tree/main?recursive=1").status_code == 200, "it is still whole"


def test_answers_match_the_document(fuzzed_hub: tuple[RunningHub, str]) -> None:
    hub, token = fuzzed_hub
    config = schemathesis.Config.from_dict({"generation": {"allow-x00": False}})
    schema = schemathesis.openapi.from_url(f"{hub.url}/api/openapi.json", config=config)
    operations = [result.ok() for result in schema.include(path_regex=ROUTES).get_all_operations()]
    assert len(operations) >= 20
    answered: set[int] = set()
    for operation in operations:
        answered |= fuzzed(operation, token)
    assert answered >= {200, 404, 422}, "not everything was refused"
    assert '"status": 500' not in hub.log


def fuzzed(operation: Any, token: str) -> set[int]:
    """The statuses it was answered with."""
    found = set()

    @given(case=operation.as_strategy(), data=st.data())
    @settings(max_examples=settings.default.max_examples // 10, deadline=None, suppress_health_check=list(HealthCheck))
    def examine(case: schemathesis.Case, data: st.DataObject) -> None:
        for name in case.path_parameters or {}:
            case.path_parameters[name] = data.draw(KNOWN[name])
        response = case.call(headers={"authorization": f"Bearer {token}"})
        assert response.status_code < 500, response.text
        found.add(response.status_code)
        # Whether a well-formed name or revision is there no schema can say; and the token was not generated.
        case.validate_response(response, excluded_checks=[positive_data_acceptance, ignored_auth])

    examine()
    return found
