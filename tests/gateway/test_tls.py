"""A service with https: its certificate is checked against the authorities in `SSL_CERT_FILE`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import create_token, create_user
from tests.bed.processes import HubProcess, hub_process
from tests.bed.running_hub import run_hub
from tests.bed.upstream import Upstream, UpstreamRequest, run_upstream, verified_claims
from tests.egress.farend import certificate_for
from tests.faults.conftest import create_store


@contextmanager
def hub_for(
    upstream: Upstream, sqlite_template: Path, folder: Path, certificates: Path
) -> Iterator[tuple[HubProcess, httpx.Client]]:
    """A hub in its own process, which trusts only `certificates`, and Ada's client."""
    store = create_store(SqliteEngine(sqlite_template, folder).fresh_url(), folder)
    with run_hub(settings_for(store.url, store.folder / "data")) as prepared:
        token = create_token(prepared, create_user(prepared, "ada"))
    flags = (*store.flags, "--inference-upstream", upstream.url, "--deliver", "off")
    with hub_process(folder, *flags, SSL_CERT_FILE=str(certificates)) as process, process.client() as client:
        client.headers["authorization"] = f"Bearer {token}"
        yield process, client


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A folder for a certificate that the service does not use."""
    folder = tmp_path / "other"
    folder.mkdir()
    certificate_for("localhost", folder)
    return folder


def test_request_and_events_pass_over_tls(sqlite_template: Path, tmp_path: Path) -> None:
    theirs, _ = certificate_for("localhost", tmp_path)

    def answer(request: UpstreamRequest) -> None:
        assert request.body() == b"{}"
        request.start(200, ("content-type", "text/event-stream"), ("transfer-encoding", "chunked"))
        for number in range(3):
            request.write_chunk(b"data: %d\n\n" % number)
        request.write(b"0\r\n\r\n")

    with (
        run_upstream(answer, theirs) as upstream,
        hub_for(upstream, sqlite_template, tmp_path, tmp_path / "cert.pem") as (process, client),
    ):
        given = client.post("/v1/chat/completions", content=b"{}")
        assert (given.status_code, given.text) == (200, "data: 0\n\ndata: 1\n\ndata: 2\n\n")
        assert verified_claims(process.url, upstream.last.token)["aud"] == upstream.url
        assert upstream.last.header("host") == upstream.url.removeprefix("https://")


@pytest.mark.parametrize("name", ["localhost", "other.example"])
def test_service_that_is_not_trusted_gets_no_request(
    sqlite_template: Path, tmp_path: Path, other: Path, name: str
) -> None:
    """Signed by another authority, or for another name."""
    theirs, _ = certificate_for(name, tmp_path)
    trusted = other if name == "localhost" else tmp_path
    with (
        run_upstream(tls=theirs) as upstream,
        hub_for(upstream, sqlite_template, tmp_path, trusted / "cert.pem") as (process, client),
    ):
        given = client.get("/v1/models")
        assert given.status_code == 502
        assert given.json() == {
            "error": "The hub cannot open a TLS connection to the inference service. Notify the operator of this hub."
        }
        assert upstream.received == []
        assert "SSLCertVerificationError" in process.errors
