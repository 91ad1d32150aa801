"""The apps of the stage and their consents: authorization URLs that always lead to the same page."""

import json
from urllib.parse import quote, urlencode

from msgspec.structs import replace

from hubgate.server.accounts.model import Organization, Owner, User
from hubgate.server.accounts.organizations import settings as organizations
from hubgate.server.audit.model import Actor
from hubgate.server.clock import DAY
from hubgate.server.ids import new_id
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps import store as app_store
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.cimd import store as documents
from hubgate.server.oauth.cimd.rules import check_document
from hubgate.server.oauth.consent import store as consents
from hubgate.server.oauth.registration.model import ClientMetadata, app_of
from hubgate.server.resources import Hub
from hubgate.server.scopes import BUILT_IN_SCOPES
from hubgate.server.storage.database import Tx

ATLAS = "atlas-notebook"
SWIFT = "swift-notes"
FIELD = "https://xn--fld-notes-fya.a-rather-long-name-of-a-host.example/.well-known/oauth-cimd"
TOOL = "https://tool.example/oauth/client.json"
PROXY = "6f1f4a39-4c1c-4f6e-9f0e-6a1d2b5b7c10"
LONG_ARABIC = "مفكرة الميدان لتدوين الملاحظات والبيانات والصور والتسجيلات في كل مكان وزمان"
EVERY_SCOPE = " ".join(scope.name for scope in BUILT_IN_SCOPES)
MANY = [f"lab-{name}" for name in ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"]]

_PKCE = {"code_challenge": "c" * 43, "code_challenge_method": "S256"}


def authorize(client_id: str, redirect_uri: str, scope: str, **more: str) -> str:
    asked = {"client_id": client_id, "redirect_uri": redirect_uri, "response_type": "code", "scope": scope, **more}
    return f"/oauth/authorize?{urlencode(asked | _PKCE)}"


REGISTERED = authorize(ATLAS, "https://atlas.example/callback", EVERY_SCOPE)
RENAMED = authorize(SWIFT, "https://swift.example/callback", "openid profile email read-repos")
DOCUMENT = authorize(FIELD, "https://elsewhere.example:8443/callback", "openid profile read-repos write-discussions")
LOOPBACK = authorize(TOOL, "http://127.0.0.1:43121/callback", "openid profile inference-api")
SELF_REGISTERED = authorize(PROXY, "http://localhost:3334/oauth/callback", "openid profile")
LOGOUT = "/oauth/logout?" + urlencode({"client_id": ATLAS, "post_logout_redirect_uri": "https://atlas.example/bye"})
CONNECTED = f"/settings/connected/{quote(FIELD, safe='')}"


async def add_apps(hub: Hub, ada: User, bob: User, acme: Organization) -> None:
    """Ada and Bob allowed two each, and Bob everything to one; he belongs to ten organizations."""
    actor = Actor(ada.name, ada.id, "203.0.113.7")
    every = tuple(EVERY_SCOPE.split())
    await _register(hub, Owner(org_id=acme.id), ATLAS, "Atlas Notebook", "https://atlas.example/callback", every, actor)
    swift = await _register(
        hub, Owner(user_id=ada.id), SWIFT, "Swift Notes", "https://swift.example/callback", every[-9:], actor
    )
    field = await _keep(hub, FIELD, LONG_ARABIC, ["https://elsewhere.example:8443/callback"])
    tool = await _keep(hub, TOOL, "Command-line tool", ["http://127.0.0.1/callback"])
    metadata = ClientMetadata(client_name="MCP proxy", redirect_uris=["http://localhost:3334/oauth/callback"])
    await hub.db.write(lambda tx: app_store.add(tx, app_of(metadata, PROXY, hub.clock())))
    names = [*MANY, "an-organization-with-forty-two-characters1"]
    own = [await organizations.create(hub.accounts, bob, name, "", Actor(bob.name, bob.id, "")) for name in names]
    await _allow(hub, ada, swift, "Slow Notes", ["openid", "profile"], [acme.id])
    await _allow(hub, ada, field, LONG_ARABIC, [*every[:4], "openid", "profile"], [acme.id])
    await _allow(hub, bob, swift, swift.name, ["openid"], [own[0].id, own[1].id])
    await _allow(hub, bob, tool, tool.name, list(every), [])


async def _register(
    hub: Hub, owner: Owner, client_id: str, name: str, redirect: str, scopes: tuple[str, ...], actor: Actor
) -> App:
    draft = App(
        client_id,
        name,
        redirect_uris=(redirect,),
        post_logout_redirect_uris=(redirect.replace("callback", "bye"),),
        scopes=scopes,
        confidential=True,
    )
    app, _ = await management.create(hub.oauth, owner, draft, actor)
    return app


async def _keep(hub: Hub, url: str, name: str, redirect_uris: list[str]) -> App:
    document = {
        "client_id": url,
        "client_name": name,
        "redirect_uris": redirect_uris,
        "token_endpoint_auth_method": "none",
    }
    text, now = json.dumps(document), hub.clock()
    findings, app = check_document(url, text.encode())
    assert app is not None, findings
    await hub.db.write(lambda tx: documents.save(tx, url, text, now, now + DAY))
    return app


async def _allow(hub: Hub, user: User, app: App, name: str, scopes: list[str], orgs: list[str]) -> None:
    now = hub.clock()
    face = App(app.client_id, name, redirect_uris=app.redirect_uris, document_host=app.document_host).face

    async def unit(tx: Tx) -> None:
        registered = app.client_id if app.is_registered else None
        consent = await consents.lock(tx, user.id, app.client_id, registered, new_id(now), now)
        await consents.update_consent(tx, replace(consent, scopes=frozenset(scopes)), face, name, now)
        await consents.set_organizations(tx, consent.id, dict.fromkeys(orgs, scopes))

    await hub.db.write(unit)
