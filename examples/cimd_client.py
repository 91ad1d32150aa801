"""A web app that nobody registered: its client ID is the address of a document that it serves itself.

Open /login. The standard library is enough; in a real app, use an OAuth library as in fastapi_sign_in.py.
"""

import base64
import hashlib
import json
import os
import secrets
from http import HTTPStatus
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import Request, urlopen

HUB, URL = os.environ["HUB"], os.environ["URL"]
PORT = int(os.environ.get("PORT", "3000"))
CLIENT_ID, REDIRECT_URI = f"{URL}/client.json", f"{URL}/callback"
ATTRIBUTES = "HttpOnly; SameSite=Lax; Path=/callback"
DOCUMENT = {
    # Must be the address of the document, character by character.
    "client_id": CLIENT_ID,
    "client_name": "Field Notes",
    "client_uri": URL,
    "redirect_uris": [REDIRECT_URI],
    # Everyone can read the document, so there is no secret: PKCE protects the code.
    "token_endpoint_auth_method": "none",
    "grant_types": ["authorization_code"],
    "scope": "openid profile",
}


def begin() -> tuple[str, str]:
    """The address to send the browser to, and its cookie: the state and the verifier of this sign-in."""
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    query = {
        "client_id": CLIENT_ID,
        "redirect_uri": REDIRECT_URI,
        "response_type": "code",
        "scope": DOCUMENT["scope"],
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    return f"{HUB}/oauth/authorize?{urlencode(query)}", f"{state}.{verifier}"


def finish(answer: dict[str, str], cookie: str) -> str:
    """The name of the user who signed in."""
    state, _, verifier = cookie.partition(".")
    # The cookie proves that this browser began the sign-in, `iss` that the answer is from this hub.
    if not state or answer.get("state") != state or answer.get("iss") != HUB:
        raise ValueError("This sign-in was not started here. Open /login again.")
    if "error" in answer:
        raise ValueError(answer.get("error_description", answer["error"]))
    form = {
        "grant_type": "authorization_code",
        "client_id": CLIENT_ID,
        "redirect_uri": REDIRECT_URI,
        "code": answer["code"],
        "code_verifier": verifier,
    }
    with urlopen(f"{HUB}/oauth/token", urlencode(form).encode(), timeout=30) as response:
        token = json.load(response)["access_token"]
    request = Request(f"{HUB}/oauth/userinfo", headers={"Authorization": f"Bearer {token}"})
    with urlopen(request, timeout=30) as response:
        return json.load(response)["preferred_username"]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path == "/client.json":
            self.send(HTTPStatus.OK, json.dumps(DOCUMENT), {"Content-Type": "application/json"})
        elif address.path == "/login":
            target, cookie = begin()
            self.send(HTTPStatus.SEE_OTHER, "", {"Location": target, "Set-Cookie": f"sign-in={cookie}; {ATTRIBUTES}"})
        elif address.path == "/callback":
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get("sign-in")
            answer = {name: values[0] for name, values in parse_qs(address.query).items()}
            try:
                status, text = HTTPStatus.OK, f"Hello {finish(answer, cookie.value if cookie else '')}"
            except (ValueError, HTTPError) as error:
                status, text = HTTPStatus.BAD_REQUEST, str(error)
            self.send(status, text, {"Set-Cookie": f"sign-in=; Max-Age=0; {ATTRIBUTES}"})
        else:
            self.send(HTTPStatus.NOT_FOUND, "Open /login.")

    def send(self, status: HTTPStatus, text: str, headers: dict[str, str] | None = None) -> None:
        body = text.encode()
        given = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body)), **(headers or {})}
        self.send_response(status)
        for name, value in given.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, *_: object) -> None:
        """Do not log codes, which are in the query."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
