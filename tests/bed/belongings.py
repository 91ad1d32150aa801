"""Everything that gives access to an account or was created by it, and which of it still works."""

from dataclasses import dataclass

import httpx
from tests.bed import devices
from tests.bed.apps import Client, code_for, make_app, proof, tokens_for
from tests.bed.people import api, browser_of, link_in, mails_to, make_organization, make_token, make_user, submit
from tests.bed.running import RunningHub

from hubgate.server.accounts.model import User

# Ended by every new password.
SIGN_INS = {"session", "app token", "refresh token", "code", "device code"}
# Ended as well where the address was never confirmed before.
CREATED = {"personal token", "consent", "own app", "token of the own app", "webhook", "invitation"}
EVERYTHING = SIGN_INS | CREATED


@dataclass
class Belongings:
    hub: RunningHub
    user: User
    # The cookie of one session.
    session: str
    token: str
    # Another developer's app that the user signed in to.
    app: Client
    tokens: dict[str, str]
    code: str
    verifier: str
    device_code: str
    own_app: Client
    token_of_own_app: str
    invitation: str

    def browser(self) -> httpx.Client:
        """The one that is signed in by that session."""
        client = browser_of(self.hub)
        client.cookies.set("token", self.session, domain=self.hub.settings.host)
        return client

    def working(self) -> set[str]:
        """What still works; refresh token and codes are used up by it."""
        refresh = {"grant_type": "refresh_token", "refresh_token": self.tokens["refresh_token"]}
        introspected = self.own_app.post("/oauth/introspect", {"token": self.token_of_own_app})
        with browser_of(self.hub, self.user) as owner, browser_of(self.hub) as visitor, self.browser() as before:
            works = {
                "session": before.get("/settings/profile").status_code == 200,
                "personal token": self._knows(self.token),
                "app token": self._knows(self.tokens["access_token"]),
                "refresh token": self.app.post("/oauth/token", refresh).status_code == 200,
                "code": self.app.redeem(self.code, code_verifier=self.verifier).status_code == 200,
                "device code": devices.poll(self.app, self.device_code).status_code == 200,
                "consent": self.app.app.name in owner.get("/settings/connected").text,
                "own app": introspected.status_code == 200,
                "token of the own app": self._knows(self.token_of_own_app),
                "webhook": "ci.example" in owner.get("/settings/webhooks").text,
                "invitation": visitor.get(self.invitation).status_code == 200,
            }
        return {name for name, does in works.items() if does}

    def _knows(self, token: str) -> bool:
        with api(self.hub, token) as program:
            return program.get("/api/whoami-v2").status_code == 200


def make_belongings(hub: RunningHub, user: User) -> Belongings:
    developer, fan = make_user(hub, f"developer-of-{user.name}"), make_user(hub, f"fan-of-{user.name}")
    app = make_app(hub, developer, name="Elsewhere", refresh_tokens=True)
    own_app = make_app(hub, user, name="Homemade")
    token = make_token(hub, user)
    with api(hub, token) as program:
        body = {"url": "https://ci.example/hook", "watched": [{"type": "user", "name": user.name}]}
        assert program.post("/api/settings/webhooks", json=body).status_code == 200
    verifier, challenge = proof()
    tokens = tokens_for(app, user)
    code = code_for(app, user, code_challenge=challenge, code_challenge_method="S256")
    started = devices.start(app)
    devices.approve(hub, user, started["user_code"], " ".join(app.app.scopes))
    organization = make_organization(hub, f"org-of-{user.name}", user)
    page = f"/organizations/{organization.name}/settings/members"
    guest = f"guest-of-{user.name}@example.com"
    with browser_of(hub, user) as browser:
        assert submit(browser, page, invitee=guest, role="admin").status_code == 303
        # Those with which apps and devices were allowed: one session is left.
        assert submit(browser, "/settings/sessions", "/settings/sessions/end-others").status_code == 303
        session = browser.cookies["token"]
    return Belongings(
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
        invitation=link_in(mails_to(hub, guest)[0]),
    )
