"""Review Desk, an app that users sign in to with the hub: the authorization code flow with PKCE, and nothing else.

Sessions are in memory: after a restart users sign in again, which takes one click.
"""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from html import escape
from urllib.parse import urlencode

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

SCOPE = "openid profile email read-repos"
# Cookies are shared by all ports of a host, so the names must not be the hub's.
_SESSION, _ATTEMPT = "review_desk", "review_desk_attempt"
_MAX_SESSIONS = 1000

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>Review Desk</title><style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 40rem; margin: 3rem auto; padding: 0 1rem }}
.button {{ font: inherit; display: inline-block; padding: .6rem 1rem; border: 1px solid; border-radius: 8px;
  background: none; color: inherit; text-decoration: none; cursor: pointer }}
code, li {{ overflow-wrap: anywhere }}
</style></head><body><h1>Review Desk</h1>{body}</body></html>
"""


@dataclass
class ExampleApp:
    hub: str
    url: str
    client_id: str
    client_secret: str = field(repr=False)
    # Access tokens by session.
    _sessions: dict[str, str] = field(default_factory=dict, repr=False)

    def asgi(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self._home),
                Route("/login", self._login),
                Route("/callback", self._callback),
                Route("/logout", self._logout, methods=["POST"]),
            ]
        )

    async def _home(self, request: Request) -> Response:
        token = self._sessions.get(request.cookies.get(_SESSION, ""))
        if token is None:
            text = "<p>This page belongs to a third-party app, not to the hub. It knows nothing about you yet.</p>"
            return _page(f'{text}<p><a class="button" href="/login">Sign in with hubgate</a></p>')
        async with self._client(token) as client:
            user = await client.get("/oauth/userinfo")
            if user.status_code == 401:
                self._sessions.pop(request.cookies[_SESSION], None)
                return _page(
                    "<p>You revoked this app's access, or it has expired. The token stopped working at once.</p>"
                    '<p><a class="button" href="/login">Sign in again</a></p>'
                )
            claims = user.json()
            name = claims["preferred_username"]
            repos = await client.get("/api/models", params={"author": name})
        return _page(self._introduction(claims) + _list_of_repos(repos))

    def _introduction(self, claims: dict[str, object]) -> str:
        name, email = str(claims.get("name") or claims["preferred_username"]), claims.get("email")
        mail = f"Your address is {escape(str(email))}." if email else "You did not share your address."
        return (
            f"<p>Hello <strong>{escape(name)}</strong>! {mail}</p>"
            f'<p><a href="{escape(self.hub)}/settings/connected">Change or revoke what this app may do</a></p>'
            '<form method="post" action="/logout"><button class="button">Sign out</button></form>'
        )

    async def _login(self, _: Request) -> Response:
        state, verifier = secrets.token_urlsafe(24), secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": f"{self.url}/callback",
            "scope": SCOPE,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        response = RedirectResponse(f"{self.hub}/oauth/authorize?{urlencode(query)}", 303)
        # The attempt belongs to this browser: a link with the code of an attacker must not sign it in (login CSRF).
        response.set_cookie(_ATTEMPT, f"{state}.{verifier}", max_age=600, httponly=True, samesite="lax")
        return response

    async def _callback(self, request: Request) -> Response:
        given = request.query_params
        state, _, verifier = request.cookies.get(_ATTEMPT, "").partition(".")
        if not state or not hmac.compare_digest(state.encode(), given.get("state", "").encode()):
            return _page('<p>This sign-in was not started here. <a href="/login">Sign in</a></p>', 400)
        # A code from another server would be sent to the wrong one (RFC 9207).
        if given.get("iss", self.hub) != self.hub or "code" not in given:
            reason = "You denied access; nothing was shared." if given.get("error") == "access_denied" else "It failed."
            return _page(f'<p>{reason} <a href="/login">Try again</a></p>')
        form = {
            "grant_type": "authorization_code",
            "code": given["code"],
            "redirect_uri": f"{self.url}/callback",
            "code_verifier": verifier,
        }
        async with self._client() as client:
            answer = await client.post("/oauth/token", data=form, auth=(self.client_id, self.client_secret))
        if answer.status_code != 200:
            return _page('<p>The hub did not accept the code. <a href="/login">Try again</a></p>', 400)
        session = secrets.token_urlsafe(24)
        while len(self._sessions) >= _MAX_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        self._sessions[session] = answer.json()["access_token"]
        response = RedirectResponse("/", 303)
        response.set_cookie(_SESSION, session, httponly=True, samesite="lax")
        response.delete_cookie(_ATTEMPT)
        return response

    async def _logout(self, request: Request) -> Response:
        if token := self._sessions.pop(request.cookies.get(_SESSION, ""), None):
            async with self._client() as client:
                await client.post("/oauth/revoke", data={"token": token}, auth=(self.client_id, self.client_secret))
        response = RedirectResponse("/", 303)
        response.delete_cookie(_SESSION)
        return response

    def _client(self, token: str | None = None) -> httpx.AsyncClient:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        # The hub is on this machine: no proxy, and no certificates to load.
        return httpx.AsyncClient(base_url=self.hub, headers=headers, timeout=20, verify=False, trust_env=False)  # noqa: S501


def _list_of_repos(repos: httpx.Response) -> str:
    if repos.status_code != 200:
        return "<p>You did not allow this app to read your repos.</p>"
    names = [escape(repo["id"]) + (" (private)" if repo.get("private") else "") for repo in repos.json()]
    if not names:
        return "<p>You have no repos that this app may read.</p>"
    return "<h2>Your repos</h2><ul>" + "".join(f"<li>{name}</li>" for name in names) + "</ul>"


def _page(body: str, status: int = 200) -> Response:
    headers = {"cache-control": "no-store", "referrer-policy": "no-referrer", "x-frame-options": "DENY"}
    return HTMLResponse(_PAGE.format(body=body), status, headers)
