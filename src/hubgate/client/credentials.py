"""Credentials of a session: a given token, or the stored sign-in, which is refreshed before it expires."""

import os
from dataclasses import replace
from typing import Literal

from hubgate.client.addresses import checked_endpoint
from hubgate.client.errors import HubgateError, NotSignedIn, SignInFailed, UnexpectedResponse
from hubgate.client.models import Token
from hubgate.client.operations import oauth
from hubgate.client.session import Session
from hubgate.client.store import SignIn, Store, StoredSignIns, acquire, with_hub
from hubgate.client.wire import Flow, work

_DAY = 86_400.0
DEFAULT_ENDPOINT = "http://127.0.0.1:8000"
EXPIRED = "sign-in expired. Run: hubgate login"


def open_session(endpoint: str | None, token: str | Literal[False] | None, store: Store, retries: int) -> Session:
    """The session for a hub. `token=False` means anonymous, even if a sign-in is stored.

    The hub and the token are those given, else those of the environment, else those of the stored sign-in.
    """
    text = endpoint or os.environ.get("HUBGATE_ENDPOINT")
    origin = checked_endpoint(text) if text else store.load().endpoint or DEFAULT_ENDPOINT
    if token is False:
        return Session(origin, FixedToken(None), store, retries)
    if given := token or os.environ.get("HUBGATE_TOKEN"):
        return Session(origin, FixedToken(given), store, retries)
    return Session(origin, StoredCredentials(), store, retries)


def checked_token(token: str) -> str:
    text = token.strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        # A line break in a header would start another header.
        raise ValueError("This is not a token: it is empty, or has spaces or characters other than printable ASCII.")
    return text


class FixedToken:
    """A fixed token, or None for anonymous access."""

    def __init__(self, token: str | None) -> None:
        self._token = None if token is None else checked_token(token)

    def current(self, _: Session) -> Flow[str | None]:
        yield from ()
        return self._token

    def renew(self, _: Session, __: str) -> Flow[str | None]:
        yield from ()
        return None


class StoredCredentials:
    """The stored sign-in for the session's hub. Sign-ins are stored by origin: no token is sent to another hub."""

    def __init__(self, sign_in: SignIn | None = None) -> None:
        self._sign_in = sign_in
        # A refresh token that the hub has rejected, which is not sent again.
        self._rejected = ""

    def current(self, session: Session) -> Flow[str | None]:
        if self._sign_in is None:
            self._sign_in = (yield from work(session.store.load)).hubs.get(session.endpoint)
            if self._sign_in is None:
                return None
        stored, now = self._sign_in, session.clock()
        if not _expires_soon(stored, now) or stored.refresh_token in ("", self._rejected):
            if stored.expires_at and stored.expires_at <= now:
                raise NotSignedIn(EXPIRED, status=401)
            return stored.access_token
        try:
            return (yield from self._refresh(session, stored.access_token))
        except HubgateError:
            # While the old token is valid, a failed refresh does no harm.
            if stored.expires_at > now:
                return stored.access_token
            raise

    def renew(self, session: Session, rejected: str) -> Flow[str | None]:
        return (yield from self._refresh(session, rejected))

    def _refresh(self, session: Session, old: str) -> Flow[str]:
        """Replace the old token. The lock ensures that only one of several processes refreshes."""
        lock = session.store.lock()
        yield from acquire(lock)
        try:
            contents = yield from work(session.store.load)
            stored = contents.hubs.get(session.endpoint)
            if stored is None:
                raise NotSignedIn("not signed in. Run: hubgate login", status=401)
            if stored.access_token == old:
                stored = yield from self._request_refresh(session, contents, stored)
            self._sign_in = stored
            return stored.access_token
        finally:
            lock.release()

    def _request_refresh(self, session: Session, contents: StoredSignIns, stored: SignIn) -> Flow[SignIn]:
        if stored.refresh_token in ("", self._rejected):
            raise NotSignedIn(EXPIRED, status=401)
        try:
            token = yield from oauth.refresh(session, stored.client_id, stored.refresh_token)
        except SignInFailed as error:
            self._rejected = stored.refresh_token
            raise NotSignedIn(EXPIRED, status=401) from error
        new = sign_in_from(token, session.clock(), stored.client_id, stored.name)
        # The response may omit the refresh token, which then stays valid (RFC 6749, section 6).
        new = new if new.refresh_token else replace(new, refresh_token=stored.refresh_token)
        after = replace(contents, hubs=with_hub(contents, session.endpoint, new).hubs)
        yield from work(lambda: session.store.save(after))
        return new


def sign_in_from(token: Token, now: float, client_id: str, name: str) -> SignIn:
    try:
        access_token = checked_token(token.access_token)
    except ValueError:
        raise UnexpectedResponse("The hub sent an invalid token.") from None
    return SignIn(
        access_token=access_token,
        refresh_token=token.refresh_token,
        expires_at=now + token.expires_in if token.expires_in else 0.0,
        issued_at=now,
        client_id=client_id,
        scope=token.scope,
        name=name,
    )


def _expires_soon(stored: SignIn, now: float) -> bool:
    """Whether the token is in its last day or, if it is short-lived, in the last tenth of its lifetime."""
    if not stored.expires_at:
        return False
    return stored.expires_at - now < min(_DAY, (stored.expires_at - stored.issued_at) / 10)
