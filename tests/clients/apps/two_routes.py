"""The smallest web app: /login redirects the browser, /callback shows the result."""

import json
import os
import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SITE, HUB, SCOPES = os.environ["SITE"], os.environ["HUB"], os.environ["SCOPES"].split()
CALLBACK = f"{SITE}/callback"


def serve(login: Callable[[], str], callback: Callable[[str], Any]) -> None:
    """`callback` is called with the whole URL of the callback request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/login":
                self.send_response(302)
                self.send_header("location", login())
                self.end_headers()
                return
            known = self.path.startswith("/callback?")
            self.send_response(200 if known else 404)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(callback(SITE + self.path)).encode() if known else b"{}")

    # One thread each, because browsers open connections that they may never use.
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = socket.socket(fileno=int(os.environ["LISTEN_FD"]))
    server.serve_forever()
