"""mcp-remote without options: it registers itself, signs its user in, and forwards to an MCP server."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from tests.bed.apps import approve
from tests.bed.clients import Conversation
from tests.bed.engines import SqliteEngine
from tests.bed.node import CLIENTS, NODE
from tests.bed.people import browser_of, create_user
from tests.bed.registration import open_to_registration
from tests.bed.resource_servers import TOOLS
from tests.clients.mcp_service import McpService, run_mcp_service

PROGRAM = CLIENTS / "node_modules/mcp-remote/dist/proxy.js"


@contextmanager
def running(service: McpService, home: Path) -> Iterator[Conversation]:
    assert PROGRAM.exists(), f"{PROGRAM} is missing: run make setup"
    process = subprocess.Popen(
        [NODE, PROGRAM, service.url],
        cwd=home,
        # Without a path it finds no browser to open.
        env={"HOME": str(home), "PATH": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Conversation(process)
    finally:
        process.kill()
        process.communicate()


def ask(program: Conversation, number: int, method: str, **params: object) -> str:
    """Send a request through mcp-remote; the line with its answer."""
    program.send_line(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
    # One line; what mcp-remote logs is on several.
    return program.until(rf'^\{{.*"id":\s*{number}\b.*').group()


def use_tool(program: Conversation) -> str:
    info = {"name": "test", "version": "1"}
    assert "notes" in ask(program, 1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
    program.send_line(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    return ask(program, 2, "tools/call", name="whoami", arguments={})


def test_mcp_remote_works_without_options(sqlite_template: Path, tmp_path: Path) -> None:
    engine = SqliteEngine(sqlite_template, tmp_path)
    with (
        open_to_registration(engine, tmp_path) as hub,
        run_mcp_service(hub, ada := create_user(hub, "ada")) as service,
    ):
        with running(service, tmp_path) as program, browser_of(hub, ada) as browser:
            address = program.until(rf"{hub.url}(/oauth/authorize\S+)").group(1)
            page = browser.get(address).text
            assert "Self-registered on" in page
            assert TOOLS.text in page
            program.until("OAuth callback server running at")
            back = approve(browser, address).headers["location"]
            assert httpx.get(back).status_code == 200
            assert "you are ada" in use_tool(program)
        with running(service, tmp_path) as program:
            assert "you are ada" in use_tool(program), "the stored token is enough"
            assert "/oauth/authorize" not in program.output
        assert service.users == {"ada"}
        lines = [json.loads(line) for line in hub.log.splitlines()]
        assert [line["status"] for line in lines if line.get("route") == "/oauth/register"] == [201]
