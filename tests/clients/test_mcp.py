"""The sample code on `/docs/protect`, run as resource servers, and MCP clients with the SDKs that sign in to them.

The clients are not registered: they have a metadata document. One server introspects tokens, one verifies JWTs.
"""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.apps import approve, create_app, tokens_for
from tests.bed.cimd_documents import URL, store_document
from tests.bed.clients import ENVIRONMENTS, Conversation
from tests.bed.node import CLIENTS, NODE
from tests.bed.people import browser_of, code_on_page, create_user
from tests.bed.processes import until
from tests.bed.resource_servers import TOOLS, Api, register
from tests.bed.running_hub import RunningHub
from tests.bed.sites import PROGRAMS, Site, site

from hubgate.server.accounts.model import User

REDIRECT = "http://127.0.0.1:7777/callback"
# What the command `uvicorn app:app` does, on the test's socket; then the same for Node.
SERVE = """
import socket, uvicorn
uvicorn.Server(uvicorn.Config(app)).run(sockets=[socket.socket(fileno=int(os.environ["LISTEN_FD"]))])
"""
MOST_SIGN_INS = 5
LISTEN = "app.listen({ fd: Number(process.env.LISTEN_FD) });"


@dataclass(frozen=True)
class Servers:
    """The three samples, with the addresses of the two MCP servers."""

    api: Api
    introspecting: Api
    with_jwts: Api

    @property
    def mcp(self) -> list[str]:
        return [self.introspecting.identifier, self.with_jwts.identifier]


def sample_on_page(hub: RunningHub, user: User, api: Api, name: str) -> str:
    with browser_of(hub, user) as browser:
        page = browser.get(f"/docs/protect?resource={api.server.id}").text
    return code_on_page(page, f"snippet-{name}")


def run_sample(hub: RunningHub, user: User, api: Api, name: str, where: Site) -> None:
    code = sample_on_page(hub, user, api, name)
    if name == "node":
        text, replaced = re.subn(r'app\.listen\(\d+, "127\.0\.0\.1"\);', LISTEN, code)
        assert replaced == 1
        where.run_node_text(text)
    else:
        program = where.home / "app.py"
        program.write_text(code + SERVE)
        where.run_python("mcp", str(program), RESOURCE_SECRET=api.secret)


@pytest.fixture(scope="module")
def ada(shared_today: RunningHub) -> User:
    store_document(shared_today, redirect_uris=[REDIRECT])
    return create_user(shared_today, "ada")


@pytest.fixture(scope="module")
def servers(shared_today: RunningHub, ada: User, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    hub, folder = shared_today, tmp_path_factory.mktemp("servers")
    with ExitStack() as stack:
        found = []
        for name, tokens in (("fastapi", "opaque"), ("mcp", "opaque"), ("node", "jwt")):
            where = stack.enter_context(site(folder / name))
            path = "/api" if name == "fastapi" else "/mcp"
            api = register(hub, ada, f"{where.url}{path}", (TOOLS,), tokens, name=f"The {name} server")
            run_sample(hub, ada, api, name, where)
            found.append(api)
        for api in found:
            until(lambda api=api: is_up(api.identifier))
        yield Servers(*found)


def is_up(address: str) -> bool:
    try:
        return httpx.get(address).status_code == 401
    except httpx.TransportError:
        return False


@contextmanager
def agent(program: str, addresses: list[str], home: Path) -> Iterator[Conversation]:
    variables = {"SERVERS": json.dumps(addresses), "CLIENT_METADATA_URL": URL, "REDIRECT_URI": REDIRECT}
    variables |= {"HOME": str(home), "SDK": program[-1]}
    if program == "python":
        command = [str(ENVIRONMENTS / "mcp/bin/python"), str(PROGRAMS / "mcp_client.py")]
    else:
        # As text: packages are not installed in the checkout.
        command = [str(NODE), "--input-type=module", "--eval", (PROGRAMS / "mcp_client.mjs").read_text()]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, cwd=CLIENTS, env=variables, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield Conversation(process)
    finally:
        process.kill()
        process.communicate()


def allow(hub: RunningHub, user: User, address: str) -> str:
    """Approve the request in a browser; the address that the browser is sent back to."""
    with browser_of(hub, user) as browser:
        path = address.removeprefix(hub.url)
        answer = browser.get(path)
        if answer.status_code == 200:
            answer = approve(browser, path)
        assert answer.status_code == 303, answer.text
        found: str = answer.headers["location"]
        return found


def outcome(conversation: Conversation) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(conversation.until(r"^DONE (.*)")[1])
    return found


@pytest.mark.parametrize("program", ["python", "typescript 1", "typescript 2"])
def test_mcp_client_uses_servers_that_introspect_and_that_verify_jwts(
    shared_today: RunningHub, ada: User, servers: Servers, tmp_path: Path, program: str
) -> None:
    hub = shared_today
    with agent(program, servers.mcp, tmp_path) as conversation:
        for api in (servers.introspecting, servers.with_jwts):
            asked = conversation.until(r"^OPEN (\S+)")[1]
            assert httpx.URL(asked).params["resource"] == api.identifier
            conversation.send_line(allow(hub, ada, asked))
            found = outcome(conversation)
            assert (found.get("tools"), found.get("said")) == (["whoami"], "ada"), found
            said = api.introspect(found["access_token"])
            assert (said["client_id"], "mcp:tools" in said["scope"].split()) == (URL, True)
            others = [each for each in (servers.api, servers.introspecting, servers.with_jwts) if each is not api]
            assert not any(other.accepts(found["access_token"]) for other in others)
            for other in others:
                assert call(other.identifier, found["access_token"]) == 401


def call(address: str, token: str) -> int:
    """The status of a request with this token: a GET for the API, the first request of MCP for the others."""
    headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
    if address.endswith("/api"):
        return httpx.get(address, headers=headers).status_code
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    return httpx.post(address, json=body, headers=headers).status_code


def test_fastapi_sample_checks_token_audience_and_scope(shared_today: RunningHub, ada: User, servers: Servers) -> None:
    hub, address = shared_today, servers.api.identifier
    app = create_app(hub, None)
    token = tokens_for(app, ada, resource=address, scope="openid mcp:tools")["access_token"]
    answer = httpx.get(address, headers={"authorization": f"Bearer {token}"})
    assert (answer.status_code, answer.json()) == (200, {"user": "ada", "app": app.id})
    refused = httpx.get(address)
    assert refused.status_code == 401
    metadata = re.findall(r'resource_metadata="([^"]+)"', refused.headers["www-authenticate"])[0]
    assert httpx.get(metadata).json() == {
        "resource": address,
        "authorization_servers": [hub.url],
        "scopes_supported": ["mcp:tools"],
    }
    narrow = tokens_for(app, ada, resource=address, scope="openid")["access_token"]
    assert [call(address, each) for each in (narrow, tokens_for(app, ada)["access_token"], "x")] == [403, 401, 401]
    app.post("/oauth/revoke", {"token": token})
    assert call(address, token) == 401
    bob = tokens_for(app, create_user(hub, "bob"), resource=address, scope="openid")["access_token"]
    assert call(address, bob) == 401, "a server on this computer accepts only tokens of its owner"


def test_jwt_of_a_stranger_is_rejected_on_the_users_computer(
    shared_today: RunningHub, ada: User, servers: Servers
) -> None:
    """O81: everyone can register the address for themselves, and gets JWTs with the same audience."""
    hub, address = shared_today, servers.with_jwts.identifier
    mallory, app = create_user(hub, "mallory"), create_app(hub, None)
    register(hub, mallory, address, (TOOLS,), "jwt")
    stolen, own = (tokens_for(app, user, resource=address, scope="openid mcp:tools") for user in (mallory, ada))
    assert (call(address, own["access_token"]), call(address, stolen["access_token"])) == (200, 401)


@dataclass
class Rogue:
    """A server that asks for tokens as if it were `resource`, and records those it gets."""

    resource: str
    hub: str
    tokens: list[str] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[str]:
        rogue = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                document = {"resource": rogue.resource or rogue.address, "authorization_servers": [rogue.hub]}
                self._answer(200 if "oauth-protected-resource" in self.path else 404, document)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                if token := self.headers.get("authorization", "").removeprefix("Bearer "):
                    rogue.tokens.append(token)
                self._answer(401, {})

            def _answer(self, status: int, body: dict[str, Any]) -> None:
                self.send_response(status)
                if status == 401:
                    self.send_header("www-authenticate", 'Bearer error="invalid_token"')
                content = json.dumps(body).encode()
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{server.server_port}/mcp"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield self.address
        finally:
            server.shutdown()
            server.server_close()


@pytest.mark.parametrize("program", ["python", "typescript 1", "typescript 2"])
def test_rogue_server_gets_no_token_that_another_server_accepts(
    shared_today: RunningHub, ada: User, servers: Servers, tmp_path: Path, program: str
) -> None:
    hub, real = shared_today, servers.introspecting
    pretender, honest = Rogue(real.identifier, hub.url), Rogue("", hub.url)
    with pretender.running() as first, honest.running() as second, agent(program, [first, second], tmp_path) as talk:
        assert "does not match" in outcome(talk)["error"], "the client notices the other server's name"
        # Some clients ask again when the new token is refused.
        for _ in range(MOST_SIGN_INS):
            said, text = talk.until(r"^(OPEN|DONE) (.*)").groups()
            if said == "DONE":
                break
            assert httpx.URL(text).params["resource"] == second
            talk.send_line(allow(hub, ada, text))
        assert "error" in json.loads(text)
    assert (pretender.tokens, len(honest.tokens) > 0) == ([], True)
    for token in honest.tokens:
        assert (real.accepts(token), call(real.identifier, token)) == (False, 401)
