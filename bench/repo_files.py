"""Downloads through `/resolve`, compared with nginx serving the same file from the same disk."""

import contextlib
import secrets
from collections.abc import Mapping
from functools import partial

from tests.bed.repos import create_repo, send_commit, send_large

from bench.harness import Table, run_interleaved, table, warm_up
from bench.http_requests import BARE, CONNECTIONS, Contestant, Server, bare_process, medians, response_to
from bench.load import Request
from bench.nginx import run_nginx
from bench.repo_hubs import SQLITE, USER, RepoHub
from bench.workspace import Workspace

TURN = 1.5
NGINX = "nginx"
SMALL, LARGE = 4096, 100_000_000
RANGE = 1024 * 1024
REPO = "files"
_AT = f"/{USER}/{REPO}/resolve/main"


def measure(workspace: Workspace, hubs: Mapping[str, RepoHub]) -> list[Table]:
    small, large = secrets.token_hex(SMALL // 2).encode(), secrets.token_bytes(LARGE)
    root = workspace.subfolder("nginx-root")
    (root / "small.txt").write_bytes(small)
    (root / "large.bin").write_bytes(large)
    for hub in hubs.values():
        _fill(hub, small, large)
    hub_server = hubs[SQLITE].server
    request = Request("GET", f"{_AT}/small.txt", {})
    with contextlib.ExitStack() as stack:
        nginx = stack.enter_context(run_nginx(root, workspace.subfolder("nginx")))
        bare = stack.enter_context(bare_process({request.path: response_to(hub_server, request)}))
        downloads = {NGINX: (nginx, "/small.txt"), BARE: (bare, request.path)}
        downloads |= {name: (hub.server, request.path) for name, hub in hubs.items()}
        large_downloads = {NGINX: (nginx, "/large.bin"), "hubgate serve": (hub_server, f"{_AT}/large.bin")}
        range_header = {"Range": f"bytes=50000000-{50_000_000 + RANGE - 1}"}
        return [
            _compare(workspace, "A file of 4 KB", downloads, CONNECTIONS),
            _compare(workspace, "A large file of 100 MB", large_downloads, 2, throughput=True),
            _compare(workspace, "1 MB of 100 MB", large_downloads, 8, throughput=True, headers=range_header),
        ]


def _fill(hub: RepoHub, small: bytes, large: bytes) -> None:
    with hub.client() as client:
        create_repo(client, REPO)
        oid = send_large(client, f"{USER}/{REPO}", large)
        response = send_commit(client, f"{USER}/{REPO}", {"small.txt": small, "large.bin": b""})
        assert response.status_code == 200, response.text
        lines = (
            '{"key": "header", "value": {"summary": "Large"}}\n'
            f'{{"key": "lfsFile", "value": {{"path": "large.bin", "algo": "sha256", "oid": "{oid}"}}}}'
        )
        response = client.post(
            f"/api/models/{USER}/{REPO}/commit/main", content=lines, headers={"content-type": "application/x-ndjson"}
        )
        assert response.status_code == 200, response.text


def _compare(
    workspace: Workspace,
    title: str,
    servers: Mapping[str, tuple[Server, str]],
    connections: int,
    *,
    throughput: bool = False,
    headers: Mapping[str, str] | None = None,
) -> Table:
    seconds = workspace.budget.seconds(TURN)
    requests = {name: [Request("GET", path, headers or {})] for name, (_, path) in servers.items()}
    contestants = {
        name: Contestant(server, partial(list, requests[name]), connections=connections)
        for name, (server, _) in servers.items()
    }
    turns = run_interleaved(
        warm_up({name: partial(contestant.load, seconds) for name, contestant in contestants.items()}),
        workspace.budget.rounds,
    )
    figure = "MB/s" if throughput else "rate"
    samples = {name: [turn[figure] for turn in taken] for name, taken in turns.items()}
    more = {name: medians(taken) for name, taken in turns.items()}
    unit = "MB/s" if throughput else "requests/s"
    return table(f"{title}, {connections} connections", unit, NGINX, samples, more)
