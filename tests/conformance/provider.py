"""The hub as an OpenID provider under test: what the OpenID Foundation's suite does with one, over the wire."""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from tests.bed.apps import Client
from tests.bed.people import PASSWORD, Page, browser_of
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User

CALLBACK = "https://suite.example/callback"
AFTER_LOGOUT = "https://suite.example/post_logout_redirect"
STATE, NONCE = "state-1/ +&", "nonce-1"


@dataclass
class Visit:
    """A browser at the provider. `pages` are those that the user had to act on, in order."""

    browser: httpx.Client
    pages: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Provider:
    hub: RunningHub
    client: Client
    user: User
    mode: str

    @contextmanager
    def visit(self) -> Iterator[Visit]:
        """A browser in which the user is signed in."""
        with browser_of(self.hub, self.user) as browser:
            yield Visit(browser)

    @contextmanager
    def first_visit(self) -> Iterator[Visit]:
        """A browser in which nobody is signed in."""
        with self.hub.client() as browser:
            yield Visit(browser)

    def parameters(self, **changes: str | None) -> dict[str, str]:
        """The parameters of an authorization request; None removes one."""
        mode = None if self.mode == "query" else self.mode
        asked: dict[str, str | None] = {
            "client_id": self.client.id,
            "redirect_uri": CALLBACK,
            "response_type": "code",
            "response_mode": mode,
            "scope": "openid",
            "state": STATE,
            "nonce": NONCE,
            **changes,
        }
        return {name: value for name, value in asked.items() if value is not None}

    def request(self, visit: Visit, **changes: str | None) -> httpx.Response:
        """Send an authorization request; the user signs in and allows it if asked."""
        return self.finish(visit, visit.browser.get("/oauth/authorize", params=self.parameters(**changes)))

    def finish(self, visit: Visit, response: httpx.Response) -> httpx.Response:
        while True:
            location = response.headers.get("location", "")
            if location.startswith("/login"):
                visit.pages.append("sign-in")
                form = Page(visit.browser.get(location)).hidden()
                form |= {"username": self.user.name, "password": PASSWORD}
                response = visit.browser.get(visit.browser.post("/login", data=form).headers["location"])
            elif location.startswith("/oauth/authorize"):
                response = visit.browser.get(location)
            elif "wants to use your account" in response.text:
                visit.pages.append("consent")
                action = unescape(response.text.partition('method="post" action="')[2].partition('"')[0])
                response = visit.browser.post(action, data={**Page(response).hidden(), "decision": "approve"})
            else:
                return response

    def answer(self, response: httpx.Response) -> dict[str, str]:
        """The response parameters, which have to arrive at the redirect URI in the requested mode."""
        if self.mode == "form_post":
            assert response.status_code == 200, response.text
            assert f'action="{CALLBACK}"' in response.text
            found = Page(response).hidden()
        else:
            assert (response.status_code, response.headers["location"].split("?")[0]) == (303, CALLBACK)
            found = dict(parse_qsl(urlsplit(response.headers["location"]).query))
        assert (found["state"], found["iss"]) == (STATE, self.hub.url)
        return found

    def tokens(self, visit: Visit, **changes: str | None) -> dict[str, Any]:
        """The tokens after a complete authorization; the ID token is checked."""
        answer = self.answer(self.request(visit, **changes))
        assert set(answer) == {"code", "state", "iss"}, answer
        return self.redeem(answer["code"], nonce=changes.get("nonce", NONCE))

    def redeem(self, code: str, nonce: str | None = NONCE) -> dict[str, Any]:
        response = self.client.redeem(code)
        assert (response.status_code, response.headers["cache-control"]) == (200, "no-store"), response.text
        body: dict[str, Any] = response.json()
        assert (body["token_type"].lower(), body["expires_in"] > 0) == ("bearer", True)
        self.check_id_token(body["id_token"], body["access_token"], nonce)
        return body

    def check_id_token(self, token: str, access_token: str, nonce: str | None) -> dict[str, Any]:
        """Verify an ID token (OpenID Connect Core, section 3.1.3.7) with the published keys."""
        head, body, signature = token.split(".")
        header, claims = _decode(head), _decode(body)
        keys = {key["kid"]: key for key in self.get("/oauth/jwks").json()["keys"]}
        jwk = keys[header["kid"]]
        public = rsa.RSAPublicNumbers(_integer(jwk["e"]), _integer(jwk["n"])).public_key()
        public.verify(_bytes(signature), f"{head}.{body}".encode(), padding.PKCS1v15(), SHA256())
        assert header["alg"] == "RS256"
        assert (claims["iss"], claims["sub"], claims["aud"]) == (self.hub.url, self.user.id, self.client.id)
        now = self.hub.clock() // 1_000_000
        assert claims["iat"] <= now < claims["exp"]
        assert claims.get("nonce") == nonce
        digest = hashlib.sha256(access_token.encode()).digest()[:16]
        assert claims["at_hash"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return claims

    def get(self, path: str, **options: Any) -> httpx.Response:
        with self.hub.client() as anyone:
            return anyone.get(path, **options)

    def userinfo(self, access_token: str) -> dict[str, Any]:
        response = self.get("/oauth/userinfo", headers={"authorization": f"Bearer {access_token}"})
        assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
        claims: dict[str, Any] = response.json()
        assert claims["sub"] == self.user.id
        return claims


def claims_of(token: str) -> dict[str, Any]:
    return _decode(token.split(".")[1])


def _decode(part: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_bytes(part))
    return found


def _bytes(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _integer(text: str) -> int:
    return int.from_bytes(_bytes(text))
