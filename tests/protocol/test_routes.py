"""Matching on the raw path, as existing clients need it."""

import pytest
from tests.bed.running_hub import RunningHub

from hubgate.server.edge.routes import Route, public
from hubgate.server.edge.table import RouteTable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface

pytestmark = pytest.mark.one_engine


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/api/test/part/a/rest/b", {"name": "a", "tail": "b"}),
        ("/api/test/part/refs%2Fpr%2F1/rest/b/c", {"name": "refs/pr/1", "tail": "b/c"}),
        ("/api/test/part/a/rest/b%3Fc%25d%3A,e", {"name": "a", "tail": "b?c%d:,e"}),
        ("/api/test/part/a/rest/", {"name": "a", "tail": ""}),
        ("/api/test/part/%C3%A9/rest/b//c", {"name": "é", "tail": "b//c"}),
    ],
)
def test_segments_are_split_before_they_are_decoded(on_each_server: RunningHub, path: str, params: object) -> None:
    with on_each_server.client() as client:
        assert client.get(path).json() == params


@pytest.mark.parametrize(
    "path", ["/api/test/part//rest/b", "/api/test/part/a/rest", "/api/test/part", "//healthz", "/healthz/"]
)
def test_invalid_path_is_404(on_each_server: RunningHub, path: str) -> None:
    with on_each_server.client() as client:
        assert client.get(f"{on_each_server.url}{path}").status_code == 404


@pytest.mark.parametrize("path", ["/api/test/part/%FF/rest/b", "/api/test/part/a%00/rest/b"])
def test_undecodable_path_is_400(on_each_server: RunningHub, path: str) -> None:
    with on_each_server.client() as client:
        assert client.get(path).status_code == 400


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/api/test/repos/a/info", {"name": "a"}),
        ("/api/test/repos/a.git/info", {"name": "a"}),
        ("/api/test/repos/a.git.git/info", {"name": "a.git"}),
        ("/api/test/repos/fixed/info", {"name": "fixed"}),
    ],
)
def test_suffixes_and_fixed_segments_are_matched(hub: RunningHub, path: str, params: object) -> None:
    """A fixed segment does not hide a parameter route that has the method, and `.git` is not part of a name."""
    with hub.client() as client:
        assert client.get(path).json() == params


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke", "/oauth/introspect"])
def test_reserved_name_with_the_wrong_method_is_405(hub: RunningHub, path: str) -> None:
    """The answer is not that the repo was not found."""
    with hub.client() as client:
        answer = client.get(path)
    assert answer.status_code == 405
    assert "POST" in answer.headers["allow"]


@pytest.mark.parametrize("path", ["/a/{b}{c}", "/a/x{b}", "/a/{b:path}/c", "/a/{b:path}.git", "/a/{b"])
def test_unmatchable_template_is_rejected_at_start(path: str) -> None:
    async def handler(_: HubRequest) -> Response:
        return Response()

    with pytest.raises(ValueError, match="/a/"):
        RouteTable([Route("GET", path, public(handler), Surface.API, "x")])
