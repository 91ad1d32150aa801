"""A third party's MCP server (streamable HTTP), registered as a resource server, that introspects tokens."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.bed.resource_servers import TOOLS, Api, register
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User

METADATA = "/.well-known/oauth-protected-resource/mcp"


class McpService(ThreadingHTTPServer):
    """`users` are the names of those whose tokens were accepted."""

    daemon_threads = True

    def __init__(self, hub: RunningHub, owner: User) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub_url = hub.url
        self.users: set[str] = set()
        self.origin = f"http://127.0.0.1:{self.server_address[1]}"
        self.url = f"{self.origin}/mcp"
        self.api: Api = register(hub, owner, self.url, (TOOLS,))

    def user_of(self, authorization: str) -> str:
        """The user of an access token; empty if it is not for this server or lacks the scope."""
        found = self.api.introspect(authorization.removeprefix("Bearer ") or "none")
        if not found["active"] or TOOLS.name not in found["scope"].split():
            return ""
        name: str = found["username"]
        self.users.add(name)
        return name


class _Handler(BaseHTTPRequestHandler):
    server: McpService
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path != METADATA:
            self._send(405)
            return
        service = self.server
        self._send(
            200,
            {
                "resource": service.url,
                "authorization_servers": [service.hub_url],
                "scopes_supported": [TOOLS.name],
            },
        )

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))))
        user = self.server.user_of(self.headers.get("authorization", ""))
        if not user:
            challenge = f'Bearer resource_metadata="{self.server.origin}{METADATA}"'
            self._send(401, {"error": "invalid_token"}, ("www-authenticate", challenge))
        elif "id" not in message:
            self._send(202)
        else:
            self._send(200, {"jsonrpc": "2.0", "id": message["id"], "result": self._result(message, user)})

    def _result(self, message: dict[str, Any], user: str) -> dict[str, Any]:
        match message["method"]:
            case "initialize":
                return {
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "notes", "version": "1"},
                }
            case "tools/list":
                return {"tools": [{"name": "whoami", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                return {"content": [{"type": "text", "text": f"you are {user}"}]}
        return {}

    def _send(self, status: int, content: object = None, *headers: tuple[str, str]) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        for name, value in (*headers, ("content-type", "application/json"), ("content-length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def run_mcp_service(hub: RunningHub, owner: User) -> Iterator[McpService]:
    service = McpService(hub, owner)
    thread = threading.Thread(target=service.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.shutdown()
        service.server_close()
        thread.join(60)
