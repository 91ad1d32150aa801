"""What app developers have on the stage: overlapping secrets, refused requests, requests to the operator."""

from msgspec.structs import replace
from tests.browser.cast_apps import ATLAS, SWIFT

from hubgate.server.accounts.model import User
from hubgate.server.audit.model import SYSTEM
from hubgate.server.clock import MINUTE
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps import store as apps
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.explain import store as refusals
from hubgate.server.oauth.explain.model import Refusal, sent_parameters
from hubgate.server.oauth.operator_requests import decision, submission
from hubgate.server.oauth.operator_requests.model import EXCHANGE
from hubgate.server.resources import Hub

OWN = f"/settings/applications/{SWIFT}"
ACMES = f"/organizations/acme/settings/applications/{ATLAS}"
EXPLAINED = "/oauth/explain/stage-refusal-0"

_SENT = [
    {
        "client_id": ATLAS,
        "redirect_uri": "https://atlas.example/callback/?next=%2Fhome",
        "scope": "openid profile read-repos fly-high",
        "response_type": "code",
        "state": "x",
        "nonce": "x",
    },
    {"grant_type": "password", "client_id": ATLAS, "username": "x", "password": "x"},
]
_STOPPED = (
    "Sign-in stopped: Atlas Notebook asked to send you to an address it has not registered. "
    "Nothing was shared. Contact the app's developer."
)
_SAID = [
    ("/oauth/authorize", "invalid_request", _STOPPED),
    ("/oauth/token", "unsupported_grant_type", "grant_type must be one of authorization_code, refresh_token."),
]


async def add_builders(hub: Hub, ada: User) -> None:
    atlas, swift = await _app(hub, ATLAS), await _app(hub, SWIFT)
    await management.refresh_secret(hub.oauth, atlas, 7 * 24 * 60 * 60, SYSTEM)
    many = tuple(f"https://preview-{number}.atlas.a-rather-long-name-of-a-host.example/cb" for number in range(4))
    await management.update(
        hub.oauth, atlas, lambda latest: replace(latest, redirect_uris=latest.redirect_uris + many), SYSTEM
    )
    now = hub.clock()
    for number, (pairs, (endpoint, error, description)) in enumerate(zip(_SENT, _SAID, strict=True)):
        refusal = Refusal(
            f"stage-refusal-{number}",
            ATLAS,
            now - number * MINUTE,
            endpoint,
            error,
            description,
            sent_parameters(pairs.items(), "body"),
        )
        await hub.db.write(lambda tx, refusal=refusal: refusals.add(tx, refusal, 50))
    reason = "Our portal signs members in.\nIt runs on a server of ours, in the cellar."
    await submission.submit(hub.oauth, swift, "read-metrics", reason, ada, SYSTEM)
    (first,) = (await decision.list_all(hub.oauth)).pending
    await decision.decide(hub.oauth, first, False, SYSTEM)
    await submission.submit(hub.oauth, atlas, EXCHANGE, reason, ada, SYSTEM)


async def _app(hub: Hub, client_id: str) -> App:
    app = await apps.find(hub.db, client_id)
    assert app is not None
    return app
