"""Everything an account owns or can sign in with, and a check of which of these still work."""

from dataclasses import dataclass

import httpx
from tests.bed import devices
from tests.bed.apps import Client, code_for, create_app, pkce_pair, tokens_for
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, link_in, mails_to, submit
from tests.bed.resource_servers import Api, register
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User

# Revoked by every password change.
SIGN_INS = {"session", "app token", "refresh token", "code", "device code"}
# Also revoked if the email address had never been verified.
CREATED = {"personal token", "consent", "own app", "token of the own app", "resource server", "webhook", "invitation"}
EVERYTHING = SIGN_INS | CREATED


@dataclass
class AccountAssets:
    """Credentials and possessions of a user."""

    hub: RunningHub
    user: User
    # A session cookie.
    session: str
    token: str
    # An app of another developer to which the user signed in.
    app: Client
    tokens: dict[str, str]
    code: str
    verifier: str
    device_code: str
    own_app: Client
    token_of_own_app: str
    resource_server: Api
    invitation: str

    def browser(self) -> httpx.Client:
        """A browser with the cookie of that session."""
        client = browser_of(self.hub)
        client.cookies.set("token", self.session, domain=self.hub.settings.host)
        return client

    def usable(self) -> set[str]:
        """The names of the assets that still work. The check consumes the refresh token and the codes."""
        refresh = {"grant_type": "refresh_token", "refresh_token": self.tokens["refresh_token"]}
        introspected = self.own_app.post("/oauth/introspect", {"token": self.token_of_own_app})
        with browser_of(self.hub, self.user) as owner, browser_of(self.hub) as visitor, self.browser() as signed_in:
            works = {
                "session": signed_in.get("/settings/profile").status_code == 200,
                "personal token": self._accepts(self.token),
                "app token": self._accepts(self.tokens["access_token"]),
                "refresh token": self.app.post("/oauth/token", refresh).status_code == 200,
                "code": self.app.redeem(self.code, code_verifier=self.verifier).status_code == 200,
                "device code": devices.poll(self.app, self.device_code).status_code == 200,
                "consent": self.app.app.name in owner.get("/settings/connected").text,
                "own app": introspected.status_code == 200,
                "token of the own app": self._accepts(self.token_of_own_app),
                "resource server": self.resource_server.ask("x").status_code == 200,
                "webhook": "ci.example" in owner.get("/settings/webhooks").text,
                "invitation": visitor.get(self.invitation).status_code == 200,
            }
        return {name for name, is_working in works.items() if is_working}

    def _accepts(self, token: str) -> bool:
        with api(self.hub, token) as program:
            return program.get("/api/whoami-v2").status_code == 200


def create_account_assets(hub: RunningHub, user: User) -> AccountAssets:
    developer, fan = create_user(hub, f"developer-of-{user.name}"), create_user(hub, f"fan-of-{user.name}")
    app = create_app(hub, developer, name="Elsewhere", refresh_tokens=True)
    own_app = create_app(hub, user, name="Homemade")
    token = create_token(hub, user)
    with api(hub, token) as program:
        body = {"url": "https://ci.example/hook", "watched": [{"type": "user", "name": user.name}]}
        assert program.post("/api/settings/webhooks", json=body).status_code == 200
    verifier, challenge = pkce_pair()
    tokens = tokens_for(app, user)
    code = code_for(app, user, code_challenge=challenge, code_challenge_method="S256")
    started = devices.start(app)
    devices.approve(hub, user, started["user_code"], " ".join(app.app.scopes))
    organization = create_organization(hub, f"org-of-{user.name}", user)
    page = f"/organizations/{organization.name}/settings/members"
    guest = f"guest-of-{user.name}@example.com"
    with browser_of(hub, user) as browser:
        assert submit(browser, page, invitee=guest, role="admin").status_code == 303
        # End the sessions in which apps and devices were approved, so that a single session is left.
        assert submit(browser, "/settings/sessions", "/settings/sessions/end-others").status_code == 303
        session = browser.cookies["token"]
    return AccountAssets(
        hub=hub,
        user=user,
        session=session,
        token=token,
        app=app,
        tokens=tokens,
        code=code,
        verifier=verifier,
        device_code=started["device_code"],
        own_app=own_app,
        token_of_own_app=tokens_for(own_app, fan)["access_token"],
        resource_server=register(hub, user, f"https://{user.name}.example/mcp"),
        invitation=link_in(mails_to(hub, guest)[0]),
    )
