"""O75: consent for a public app with a loopback redirect is remembered for that exact address and port only."""

from typing import Any

import httpx
import pytest
from tests.bed import devices
from tests.bed.apps import Client, approve, create_app, pkce_pair, redirect_parameters
from tests.bed.cimd_documents import store_document
from tests.bed.people import browser_of, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User
from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.apps import management
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

PKCE: dict[str, Any] = {"code_challenge": pkce_pair()[1], "code_challenge_method": "S256"}


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


def silent(browser: httpx.Client, client: Client, uri: str, **more: str) -> str:
    answer = redirect_parameters(browser.get(client.address(redirect_uri=uri, prompt="none", **{**PKCE, **more})))
    return answer.get("error", "a code")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_o75_another_port_needs_a_new_consent(hub: RunningHub, ada: User, host: str) -> None:
    client = create_app(hub, None, redirect_uris=(f"http://{host}/cb",), confidential=False)
    one, other, bare = f"http://{host}:4711/cb", f"http://{host}:4712/cb", f"http://{host}/cb"
    with browser_of(hub, ada) as browser:
        approve(browser, client.address(redirect_uri=one, **PKCE))
        assert silent(browser, client, one) == "a code"
        assert silent(browser, client, other) == silent(browser, client, bare) == "consent_required"
        assert browser.get(client.address(redirect_uri=other, **PKCE)).status_code == 200, "the page"
        assert browser.post(client.address(redirect_uri=other, **PKCE)).status_code == 200, "the page"
        approve(browser, client.address(redirect_uri=other, **PKCE))
        assert silent(browser, client, one) == silent(browser, client, other) == "a code"


def test_o75_registered_port_needs_a_new_consent_too(hub: RunningHub, ada: User) -> None:
    client = create_app(hub, None, redirect_uris=("http://127.0.0.1:4711/cb",), confidential=False)
    with browser_of(hub, ada) as browser:
        approve(browser, client.address(redirect_uri=None, **PKCE))
        assert silent(browser, client, "http://127.0.0.1:4711/cb") == "a code"
        assert silent(browser, client, "http://127.0.0.1:9/cb") == "consent_required"


def test_o75_other_consents_do_not_cover_a_loopback_port(hub: RunningHub, ada: User) -> None:
    """Granted to the app's website, or to its device."""
    uris = ("https://app.example/cb", "http://127.0.0.1/cb", "myapp://cb")
    client = create_app(hub, None, redirect_uris=uris, confidential=False)
    with browser_of(hub, ada) as browser:
        approve(browser, client.address(**PKCE))
        started = devices.start(client)
        devices.approve(hub, ada, started["user_code"], " ".join(client.app.scopes))
        assert silent(browser, client, uris[0]) == "a code"
        assert silent(browser, client, "http://127.0.0.1:4711/cb") == "consent_required"
        assert silent(browser, client, uris[2]) == "consent_required"
    fresh = create_app(hub, None, redirect_uris=uris, confidential=False)
    with browser_of(hub, ada) as browser:
        for uri in uris[1:]:
            approve(browser, fresh.address(redirect_uri=uri, **PKCE))
        assert silent(browser, fresh, uris[0]) == "consent_required", "nor the other way round"


@pytest.mark.parametrize("confidential", [True, False])
@pytest.mark.parametrize("uri", ["myapp://cb", "com.example.notes:/cb"])
def test_o75_custom_scheme_always_needs_consent(hub: RunningHub, ada: User, uri: str, confidential: bool) -> None:
    client = create_app(hub, None, redirect_uris=(uri,), confidential=confidential)
    with browser_of(hub, ada) as browser:
        for _ in range(2):
            assert "code" in redirect_parameters(approve(browser, client.address(**PKCE)))
            assert silent(browser, client, uri) == "consent_required"


def test_o75_consent_for_a_confidential_app_covers_every_port(hub: RunningHub, ada: User) -> None:
    """The code alone is useless."""
    client = create_app(hub, None, redirect_uris=("http://127.0.0.1/cb",))
    with browser_of(hub, ada) as browser:
        approve(browser, client.address(redirect_uri="http://127.0.0.1:4711/cb", **PKCE))
        assert silent(browser, client, "http://127.0.0.1:4712/cb") == "a code"


def test_o75_consent_is_not_remembered_after_the_secret_is_deleted(hub: RunningHub, ada: User) -> None:
    client = create_app(hub, None, redirect_uris=("http://127.0.0.1/cb",))
    with browser_of(hub, ada) as browser:
        approve(browser, client.address(redirect_uri="http://127.0.0.1:4711/cb", **PKCE))

        async def delete(opened: Hub) -> None:
            await management.delete_secret(opened.oauth, client.app, SYSTEM)

        hub.call(delete)
        assert silent(browser, client, "http://127.0.0.1:4711/cb") == "consent_required"


def test_o75_app_with_a_metadata_document_always_needs_consent(hub: RunningHub, ada: User) -> None:
    client = store_document(hub, redirect_uris=["http://127.0.0.1/cb"])
    uri = "http://127.0.0.1:4711/cb"
    with browser_of(hub, ada) as browser:
        approve(browser, client.address(redirect_uri=uri, scope="openid", **PKCE))
        assert silent(browser, client, uri, scope="openid") == "consent_required"
