"""Signs in with a device code or a browser, stores the sign-in, and signs out."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from hubgate.client.credentials import FixedToken, StoredCredentials, sign_in_from
from hubgate.client.errors import HubgateError
from hubgate.client.login.loopback import Listener
from hubgate.client.login.request import authorization_request, code_from
from hubgate.client.models import DeviceCode, Token, WhoAmI
from hubgate.client.operations import accounts, oauth
from hubgate.client.operations.oauth import CLI_CLIENT_ID
from hubgate.client.session import Session
from hubgate.client.store import update, with_hub, without_hub
from hubgate.client.wire import Flow, work


def login(
    session: Session,
    show: Callable[[DeviceCode], object],
    *,
    client_id: str = CLI_CLIENT_ID,
    scopes: Sequence[str] | None = None,
) -> Flow[WhoAmI]:
    """Sign in with a device code, and store the sign-in.

    `show` must display the code, which the user enters in any browser.
    """
    code = yield from oauth.request_device_code(session, client_id, scopes)
    yield from work(lambda: show(code))
    token = yield from oauth.poll_for_token(session, client_id, code)
    return (yield from _store_sign_in(session, token, client_id))


def login_in_browser(
    session: Session,
    client_id: str,
    *,
    scopes: Sequence[str] = ("openid", "profile"),
    open_browser: Callable[[str], object] | None = None,
    seconds: float = 300,
) -> Flow[WhoAmI]:
    """Sign in with a browser on this machine, and store the sign-in.

    `client_id` is an app whose registered redirect URI is http://127.0.0.1/callback, with any port.
    """
    # The authorization code flow for native apps (RFC 8252), with PKCE and state.
    listener = Listener()
    try:
        request = authorization_request(session.endpoint, client_id, listener.redirect_uri, scopes)
        yield from work(lambda: (open_browser or _open_in_browser)(request.url))
        query = yield from work(lambda: listener.wait(request.state, seconds))
    finally:
        listener.close()
    code = code_from(query, request, session.endpoint)
    token = yield from oauth.redeem_code(session, client_id, code, request.redirect_uri, request.verifier)
    return (yield from _store_sign_in(session, token, client_id))


def logout(session: Session) -> Flow[bool]:
    """Revoke the stored sign-in and delete it. False if there was none."""
    stored = (yield from work(session.store.load)).hubs.get(session.endpoint)
    if stored is None:
        return False
    # The sign-in is deleted even if the revocation fails.
    with contextlib.suppress(HubgateError):
        yield from oauth.revoke(session, stored.client_id, stored.refresh_token or stored.access_token)
    yield from update(session.store, lambda contents: without_hub(contents, session.endpoint))
    return True


def _open_in_browser(url: str) -> None:
    import webbrowser

    webbrowser.open(url)


def _store_sign_in(session: Session, token: Token, client_id: str) -> Flow[WhoAmI]:
    new = sign_in_from(token, session.clock(), client_id, "")
    me = yield from accounts.whoami(replace(session, credentials=FixedToken(new.access_token)))
    new = replace(new, name=me.name)
    yield from update(session.store, lambda contents: with_hub(contents, session.endpoint, new))
    session.credentials = StoredCredentials(new)
    return me
