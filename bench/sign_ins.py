"""Users who signed in to an app of a running hub, created by the hub's use cases outside the measured time."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from msgspec import structs
from tests.bed.apps import pkce_pair

from bench.http_requests import bearer_get, post_form
from bench.load import Request
from hubgate.server.accounts import signup
from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.model import Organization, Owner, Person, User, Visitor
from hubgate.server.accounts.organizations import members, settings
from hubgate.server.accounts.roles import Role
from hubgate.server.accounts.signup import Candidate
from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.authorize.request import QUERY, AuthorizationRequest, ReturnAddress
from hubgate.server.oauth.consent import approval
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.consent.approval import Selection
from hubgate.server.oauth.consent.model import Consent
from hubgate.server.oauth.grants import authorization_code, refresh_token
from hubgate.server.oauth.grants.pipeline import Grant, GrantRequest
from hubgate.server.oauth.parameters import Parameters
from hubgate.server.oauth.tokens import issuance
from hubgate.server.oauth.tokens.issuance import TokenDetails
from hubgate.server.resources import Hub
from hubgate.server.scopes import join_scopes
from hubgate.server.storage.database import Tx
from hubgate.server.storage.postgres import CONNECTIONS

# More users than connections, so that concurrent requests are rarely from the same user, as in production.
USERS = 64
ORGANIZATIONS = ("acme", "apex", "zeta")
REDIRECT = "https://app.example/callback"
SCOPES = ("openid", "profile", "email", "read-repos")
# A limit because codes expire after a minute. A busy machine creates fewer codes, but also redeems them more slowly.
ISSUE_SECONDS = 4.0

_VISITOR = Visitor("127.0.0.1", "bench")

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class SignIns:
    """An app with a secret, PKCE and refresh tokens, which all users approved for all their organizations."""

    hub: Hub
    app: App
    secret: str
    request: AuthorizationRequest
    verifier: str
    consents: Sequence[Consent]

    async def redemptions(self, max_codes: int) -> list[Request]:
        """Token requests, each with a new code."""
        return [
            self._form("/oauth/token", grant_type="authorization_code", redirect_uri=REDIRECT, **code)
            for code in await self._codes(max_codes)
        ]

    async def refreshes(self) -> list[Request]:
        """A refresh for each user, with a token that was itself refreshed: few refreshes are the first of a sign-in."""
        tokens = [response["refresh_token"] for response in await self._refresh_all()]
        return [self._form("/oauth/token", grant_type="refresh_token", refresh_token=token) for token in tokens]

    async def userinfos(self) -> list[Request]:
        tokens = [response["access_token"] for response in await self._refresh_all()]
        return [bearer_get("/oauth/userinfo", token) for token in tokens]

    async def whoamis(self) -> list[Request]:
        tokens = [response["access_token"] for response in await self._refresh_all()]
        return [bearer_get("/api/whoami-v2", token) for token in tokens]

    async def introspections(self) -> list[Request]:
        tokens = [response["access_token"] for response in await self._refresh_all()]
        return [self._form("/oauth/introspect", token=token) for token in tokens]

    async def fill(self, pairs: int) -> None:
        """Store pairs of valid access and refresh tokens directly, without responses and ID tokens."""
        per_unit = 25

        async def add(consent: Consent) -> None:
            await self.hub.db.write(lambda tx: self._add_pairs(tx, consent, per_unit))

        turns = itertools.islice(itertools.cycle(self.consents), pairs // per_unit)
        await run_concurrently(add, turns)

    async def _add_pairs(self, tx: Tx, consent: Consent, pairs: int) -> None:
        now, scopes = self.hub.clock(), join_scopes(SCOPES)
        for number in range(pairs):
            family = f"{consent.id}-{number}"
            ids = (self.app.client_id, consent.user_id, consent.id)
            _, adding = issuance.new_refresh_token(*ids, scopes, "", now, family, now)
            await tx.exec(*adding)
            details = TokenDetails(*ids, None, scopes, family, None, self.app.token_lifetime)
            await issuance.add_access_token(tx, details, now)

    async def _codes(self, max_codes: int) -> list[dict[str, str]]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + ISSUE_SECONDS
        found: list[dict[str, str]] = []

        async def issue(consent: Consent) -> None:
            if loop.time() < deadline:
                code = await approval.issue_code(self.hub.oauth, self.request, consent, self.hub.clock(), None)
                assert code is not None
                found.append({"code": code, "code_verifier": self.verifier})

        await run_concurrently(issue, itertools.islice(itertools.cycle(self.consents), max_codes))
        return found

    async def _refresh_all(self) -> list[dict[str, str]]:
        """Sign in all users, refresh once and return the token responses."""

        async def sign_in(code: dict[str, str]) -> dict[str, str]:
            first = await self._request_tokens(authorization_code.GRANT, redirect_uri=REDIRECT, **code)
            return await self._request_tokens(refresh_token.GRANT, refresh_token=first["refresh_token"])

        return await run_concurrently(sign_in, await self._codes(len(self.consents)))

    async def _request_tokens(self, grant: Grant, **parameters: str) -> dict[str, str]:
        request = GrantRequest(self.hub.oauth, Parameters(parameters.items()), self.app, None, _VISITOR)
        response: dict[str, str] = await grant.answer(request)
        return response

    def _form(self, path: str, /, **fields: str) -> Request:
        return post_form(path, self.app.client_id, self.secret, **fields)


async def create_sign_ins(hub: Hub, **settings_of_app: str) -> SignIns:
    users = await run_concurrently(partial(create_user, hub), [f"user-{number}" for number in range(USERS)])
    for name in ORGANIZATIONS:
        organization = await settings.create(hub.accounts, users[0], name, "", SYSTEM)
        await run_concurrently(partial(_join, hub, organization), users[1:])
    draft = App("", "Notebook", redirect_uris=(REDIRECT,), scopes=SCOPES, confidential=True, refresh_tokens=True)
    draft = structs.replace(draft, **settings_of_app)
    app, secret = await management.create(hub.oauth, Owner(user_id=users[0].id), draft, SYSTEM)
    assert secret is not None
    verifier, challenge = pkce_pair()
    request = AuthorizationRequest(
        app=app,
        return_address=ReturnAddress(REDIRECT, "state", QUERY, hub.settings.base_url),
        redirect_uri_sent=True,
        scopes=SCOPES,
        organizations=(),
        resources=(),
        servers=(),
        challenge=challenge,
        nonce="n-0S6_WzA2Mj",
        prompt=frozenset(),
        max_age=None,
        login_hint="",
        expected_user=None,
    )
    consents = await run_concurrently(partial(_consent, hub, request), users)
    return SignIns(hub, app, secret, request, verifier, consents)


async def create_user(hub: Hub, name: str) -> User:
    candidate = Candidate(name, f"{name}@example.org", "", "Ada Lovelace")
    return await signup.create_by_operator(hub.accounts, candidate, verified=True, operator=False)


async def _join(hub: Hub, organization: Organization, user: User) -> None:
    await members.add(hub.accounts, organization, user, Role.WRITE, SYSTEM)


async def _consent(hub: Hub, request: AuthorizationRequest, user: User) -> Consent:
    person: Person | None = await account_store.person(hub.db, user.id)
    assert person is not None
    await approval.approve(hub.oauth, request, person, Selection(request.scopes, list(person.roles)), hub.clock())
    consent = await consent_store.find(hub.db, user.id, request.app.client_id)
    assert consent is not None
    return consent


async def run_concurrently(work: Callable[[T], Awaitable[R]], items: Iterable[T]) -> list[R]:
    """Run `work` for all items, with as many at once as there are connections: on a busy machine, more would exceed the
    hub's wait limit.
    """
    waiting = iter(items)

    async def run() -> list[R]:
        return [await work(item) for item in waiting]

    return [result for some in await asyncio.gather(*(run() for _ in range(CONNECTIONS))) for result in some]
