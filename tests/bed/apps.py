"""Third-party apps for tests, and the steps of signing in to them."""

import base64
import hashlib
import secrets
from dataclasses import dataclass
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx
from tests.bed.people import Page, browser_of
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import Organization, Owner, User
from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps.model import App
from hubgate.server.resources import Hub

REDIRECT = "https://app.example/callback"
SCOPES = ("openid", "profile", "email", "read-repos")


@dataclass(frozen=True)
class Client:
    """A registered app with its secret; None for a public client."""

    hub: RunningHub
    app: App
    secret: str | None

    @property
    def id(self) -> str:
        return self.app.client_id

    @property
    def basic(self) -> tuple[str, str]:
        assert self.secret is not None
        return self.id, self.secret

    def address(self, **parameters: str | None) -> str:
        """The address of the authorization page. A parameter set to None is omitted."""
        query: dict[str, str | None] = {
            "client_id": self.id,
            "redirect_uri": self.app.redirect_uris[0],
            "response_type": "code",
            "scope": " ".join(self.app.scopes),
            "state": "s t&te",
            **parameters,
        }
        return "/oauth/authorize?" + urlencode({name: value for name, value in query.items() if value is not None})

    def redeem(self, code: str, **parameters: str) -> httpx.Response:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.app.redirect_uris[0],
            **parameters,
        }
        return self.post("/oauth/token", form)

    def post(self, path: str, form: dict[str, str]) -> httpx.Response:
        """Send a form, authenticated as this app."""
        with self.hub.client() as http:
            if self.secret is not None:
                return http.post(path, data=form, auth=self.basic)
            return http.post(path, data={"client_id": self.id, **form})


def create_app(
    hub: RunningHub, owner: User | None = None, organization: Organization | None = None, **given: object
) -> Client:
    fields = {"name": "Notebook", "redirect_uris": (REDIRECT,), "scopes": SCOPES, "confidential": True, **given}
    draft = App(client_id="", **fields)  # type: ignore[arg-type]
    app_owner = Owner(org_id=organization.id) if organization else Owner(user_id=owner.id if owner else None)

    async def work(opened: Hub) -> tuple[App, str | None]:
        return await management.create(opened.oauth, app_owner, draft, SYSTEM)

    app, secret = hub.call(work)
    return Client(hub, app, secret)


def pkce_pair() -> tuple[str, str]:
    """A PKCE verifier and its challenge."""
    verifier = secrets.token_urlsafe(48)
    digest = hashlib.sha256(verifier.encode()).digest()
    return verifier, base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def redirect_parameters(response: httpx.Response) -> dict[str, str]:
    """The parameters of the redirect back to the app."""
    assert response.status_code == 303, response.text
    return dict(parse_qsl(urlsplit(response.headers["location"]).query))


def approve(browser: httpx.Client, address: str, **changes: object) -> httpx.Response:
    """Open the consent page and press Allow, with all requested scopes unless `scopes` is given."""
    page = browser.get(address)
    assert page.status_code == 200, (page.status_code, page.headers.get("location"), page.text[:500])
    requested = parse_qs(urlsplit(address).query).get("scope", [""])[0].split()
    form = {**Page(page).hidden(), "decision": "approve", "scopes": requested, "orgs": [], **changes}
    return browser.post(address, data=form)


def code_for(client: Client, user: User, **parameters: str | None) -> str:
    """A new authorization code. The user approves the request unless an earlier consent covers it."""
    address = client.address(**parameters)
    with browser_of(client.hub, user) as browser:
        response = browser.get(address)
        return redirect_parameters(response if response.status_code == 303 else approve(browser, address))["code"]


def tokens_for(client: Client, user: User, **parameters: str | None) -> dict[str, str]:
    verifier, challenge = pkce_pair()
    code = code_for(client, user, code_challenge=challenge, code_challenge_method="S256", **parameters)
    response = client.redeem(code, code_verifier=verifier)
    assert response.status_code == 200, response.text
    body: dict[str, str] = response.json()
    return body


def token_of(app: Client, user: User, scope: str, *organizations: Organization) -> str:
    """A token with these scopes, for these organizations."""
    verifier, challenge = pkce_pair()
    asked = {"scope": f"openid {scope}", "code_challenge": challenge, "code_challenge_method": "S256"}
    if not organizations:
        return tokens_for(app, user, scope=f"openid {scope}")["access_token"]
    with browser_of(app.hub, user) as browser:
        address = app.address(**asked, prompt="consent")
        sent = approve(browser, address, orgs=[organization.id for organization in organizations])
    code = httpx.URL(sent.headers["location"]).params["code"]
    answer: dict[str, str] = app.redeem(code, code_verifier=verifier).json()
    return answer["access_token"]
