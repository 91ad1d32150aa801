"""From nothing to a stored sign-in, and back."""

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
    return (yield from _kept(session, store, token, client_id))


def by_browser(
    session: Session,
    store: Store,
    open_browser: Callable[[str], object] | None,
    *,
    client_id: str,
    scopes: Sequence[str],
    seconds: float,
) -> Flow[WhoAmI]:
    """The authorization code flow of an app on this machine (RFC 8252), with PKCE and state."""
    listener = Listener()
    try:
        asked = begin(session.endpoint, client_id, listener.redirect_uri, scopes)
        yield from work(lambda: (open_browser or _opened)(asked.address))
        query = yield from work(lambda: listener.wait(asked.state, seconds))
    finally:
        listener.close()
    code = code_from(query, asked, session.endpoint)
    token = yield from oauth.redeem(session, client_id, code, asked.redirect_uri, asked.verifier)
    return (yield from _kept(session, store, token, client_id))


def out(session: Session, store: Store) -> Flow[bool]:
    """Whether there was a sign-in to forget. The hub is told, so that the tokens end; if it cannot be told, they are
    forgotten here all the same.
    """
    kept = (yield from work(store.load)).hubs.get(session.endpoint)
    if kept is None:
        return False
    with contextlib.suppress(HubgateError):
        yield from oauth.revoke(session, kept.client_id, kept.refresh_token or kept.access_token)
    yield from changed(store, lambda everything: without_hub(everything, session.endpoint))
    return True


def _opened(address: str) -> None:
    import webbrowser

    webbrowser.open(address)


def _kept(session: Session, store: Store, token: Token, client_id: str) -> Flow[WhoAmI]:
    fresh = signed_in(token, session.clock(), client_id, "")
    known = replace(session, credentials=Given(fresh.access_token))
    me = yield from people.whoami(known)
    fresh = replace(fresh, name=me.name)
    yield from changed(store, lambda kept: with_hub(kept, session.endpoint, fresh))
    session.credentials = Stored(store, fresh)
    return me
