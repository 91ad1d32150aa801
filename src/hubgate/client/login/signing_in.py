"""Signs in with a device code or a browser, stores the sign-in, and signs out."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from hubgate.client.credentials import Given, Stored, signed_in
from hubgate.client.errors import HubgateError
from hubgate.client.login.loopback import Listener
from hubgate.client.login.request import begin, code_from
from hubgate.client.models import DeviceCode, Token, WhoAmI
from hubgate.client.operations import oauth, people
from hubgate.client.session import Session
from hubgate.client.store import Store, changed, with_hub, without_hub
from hubgate.client.wire import Flow, work


def by_device(
    session: Session,
    store: Store,
    show: Callable[[DeviceCode], object],
    *,
    client_id: str,
    scopes: Sequence[str] | None,
) -> Flow[WhoAmI]:
    code = yield from oauth.start_device(session, client_id, scopes)
    yield from work(lambda: show(code))
    token = yield from oauth.wait_for_device(session, client_id, code)
    return (yield from _store_sign_in(session, store, token, client_id))


def by_browser(
    session: Session,
    store: Store,
    open_browser: Callable[[str], object] | None,
    *,
    client_id: str,
    scopes: Sequence[str],
    seconds: float,
) -> Flow[WhoAmI]:
    """Sign in with the authorization code flow for native apps (RFC 8252), with PKCE and state."""
    listener = Listener()
    try:
        request = begin(session.endpoint, client_id, listener.redirect_uri, scopes)
        yield from work(lambda: (open_browser or _open_in_browser)(request.address))
        query = yield from work(lambda: listener.wait(request.state, seconds))
    finally:
        listener.close()
    code = code_from(query, request, session.endpoint)
    token = yield from oauth.redeem(session, client_id, code, request.redirect_uri, request.verifier)
    return (yield from _store_sign_in(session, store, token, client_id))


def out(session: Session, store: Store) -> Flow[bool]:
    """Revoke the tokens and delete the stored sign-in, even if the revocation fails. False if there was none."""
    stored = (yield from work(store.load)).hubs.get(session.endpoint)
    if stored is None:
        return False
    with contextlib.suppress(HubgateError):
        yield from oauth.revoke(session, stored.client_id, stored.refresh_token or stored.access_token)
    yield from changed(store, lambda everything: without_hub(everything, session.endpoint))
    return True


def _open_in_browser(address: str) -> None:
    import webbrowser

    webbrowser.open(address)


def _store_sign_in(session: Session, store: Store, token: Token, client_id: str) -> Flow[WhoAmI]:
    new = signed_in(token, session.clock(), client_id, "")
    known = replace(session, credentials=Given(new.access_token))
    me = yield from people.whoami(known)
    new = replace(new, name=me.name)
    yield from changed(store, lambda stored: with_hub(stored, session.endpoint, new))
    session.credentials = Stored(store, new)
    return me
