"""Who is asking, found out before any handler runs.

Pages know people by their session cookie, everything else by a token in the Authorization header; neither takes the
other's credential (attack O61). Only files are read with either: by programs, and by browsers from a page that shows
them. Nothing of a file runs there, and no other origin reads along: the cookie is Lax, and CORS is without credentials.

A public route of the API asks nobody. Elsewhere a token that is presented must be good: a bad one is refused even where
anonymous visitors are welcome, because its sender believes to be somebody.

What is found is read for this request: a revocation or a change of role made by any process holds at the next one.
"""

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import unquote_to_bytes

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import ANONYMOUS, Caller, share_of
from hubgate.server.accounts.sessions import browsers
from hubgate.server.accounts.sessions import store as session_store
from hubgate.server.accounts.tokens import personal
from hubgate.server.accounts.tokens import store as token_store
from hubgate.server.accounts.tokens.text import TokenKind, read_token
from hubgate.server.clock import Clock
from hubgate.server.edge.routes import Route
from hubgate.server.errors import BadRequest, TokenForAnotherServer, Unauthorized
from hubgate.server.events import depth
from hubgate.server.http.cookies import SESSION, read_cookie
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.storage.aside import Aside
from hubgate.server.storage.database import Database

# Existing clients compare this text to tell a bad token from a missing repo.
BAD_CREDENTIAL = "Invalid credentials in Authorization header"

# Who presents a token with this key, if it is good.
FindCaller = Callable[[bytes], Awaitable[Caller | None]]


@dataclass(frozen=True)
class Guard:
    db: Database
    clock: Clock
    # Kinds of token that other packages issue.
    others: Mapping[TokenKind, FindCaller] = field(default_factory=dict)
    # Whether the public address is https, which decides the name of the session cookie.
    secure: bool = False

    @cached_property
    def aside(self) -> Aside:
        return Aside(self.db)

    async def __call__(self, request: HubRequest, route: Route | None) -> None:
        """Without a route, for the page that says that there is nothing here."""
        caller = await self._caller(request, route)
        request.caller = caller
        request.jobs_for.share = share_of(request)

    async def _caller(self, request: HubRequest, route: Route | None) -> Caller | None:
        """None where nobody asks."""
        if route is None:
            return await self.browser(request)
        depth.enter(request.headers.get(depth.HEADER))
        query = request.scope["query_string"]
        if query and route.surface.value.cors and _names_a_token(query):
            # It would stand in logs, histories and referrers (RFC 9700, section 4.3.2; attack O47).
            raise BadRequest("Send the token in the Authorization header, not in the address.")
        if route.surface is Surface.PAGE:
            return await self.browser(request)
        if route.action is Action.HUB_PUBLIC:
            return None
        if route.surface is Surface.FILE and "authorization" not in request.headers:
            return await self.browser(request) if route.method == "GET" else ANONYMOUS
        find = self._presenter if route.any_audience else self._bearer
        return await find(request, route.surface)

    async def browser(self, request: HubRequest) -> Caller:
        """The user of a page. A cookie that is no longer good is as none."""
        cookie = read_cookie(request, SESSION, secure=self.secure)
        now = self.clock()
        found = await browsers.find(self.db, cookie, now) if cookie else None
        if found is None:
            return ANONYMOUS
        person, session = found
        if browsers.is_to_be_noted(session, now):
            self.aside.note(session.id, lambda tx: session_store.note_use(tx, session.id, now, request.client_ip))
        return Caller.with_session(person, session)

    async def if_good(self, request: HubRequest) -> Caller:
        """Who presents a token, for a public route that says more to some: one that is no longer good is as none."""
        try:
            return await self._bearer(request, Surface.API)
        except Unauthorized:
            return ANONYMOUS

    async def again(self, request: HubRequest) -> Caller:
        """Who it is by now, for what began a while ago: a push that took an hour to arrive."""
        return await self._bearer(request, Surface.GIT)

    async def _bearer(self, request: HubRequest, surface: Surface) -> Caller:
        """Who presents a token for this hub. A server that was given one for itself may try it here (attack O64)."""
        caller = await self._presenter(request, surface)
        if caller.app is not None and caller.app.other_servers:
            raise TokenForAnotherServer(caller.app.other_servers)
        return caller

    async def _presenter(self, request: HubRequest, surface: Surface) -> Caller:
        header = request.headers.get("authorization")
        if header is None:
            return ANONYMOUS
        read = read_token(_presented(header, surface))
        caller = await self._holder(*read) if read else None
        if caller is None:
            raise Unauthorized(BAD_CREDENTIAL)
        return caller

    async def _holder(self, kind: TokenKind, key: bytes) -> Caller | None:
        if kind is TokenKind.PERSONAL:
            return await self._personal(key)
        find = self.others.get(kind)
        return await find(key) if find else None

    async def _personal(self, key: bytes) -> Caller | None:
        found = await token_store.find(self.db, key)
        if found is None:
            return None
        person, token = found
        now = self.clock()
        if personal.is_to_be_noted(token, now):
            self.aside.note(token.id, lambda tx: token_store.note_use(tx, token.id, now))
        return Caller.with_token(person, token)


def _names_a_token(query: bytes) -> bool:
    return any(unquote_to_bytes(pair.partition(b"=")[0]) == b"access_token" for pair in query.split(b"&"))


def _presented(header: str, surface: Surface) -> str:
    scheme, _, value = header.partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return value
    if scheme.lower() == "basic" and surface in (Surface.GIT, Surface.LFS, Surface.FILE):
        # git sends the token as password, or as user name when it is asked for one only.
        try:
            user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
        except ValueError:
            raise Unauthorized(BAD_CREDENTIAL) from None
        return password or user
    raise Unauthorized(BAD_CREDENTIAL)
