"""The users of the stage: enough data for every page to show something, with difficult names."""

from dataclasses import dataclass

from tests.bed.blocking import run_blocking
from tests.browser.cast_apps import add_apps
from tests.browser.cast_builders import add_builders
from tests.browser.cast_collections import add_access_requests, add_collections
from tests.browser.cast_devices import add_devices
from tests.browser.cast_exchange import add_exchange
from tests.browser.cast_repos import add_repos
from tests.browser.cast_resources import add_resources
from tests.browser.cast_spaces import add_spaces
from tests.browser.cast_webhooks import add_webhooks

from hubgate.server.accounts import own_account, signup, store
from hubgate.server.accounts.model import Organization, User, Visitor
from hubgate.server.accounts.organizations import invitations, members
from hubgate.server.accounts.organizations import settings as organizations
from hubgate.server.accounts.roles import Role, TokenRole
from hubgate.server.accounts.sessions import browser_sessions
from hubgate.server.accounts.signup import Candidate
from hubgate.server.accounts.tokens import personal
from hubgate.server.audit.model import Actor
from hubgate.server.resources import Hub, open_hub
from hubgate.server.settings import Settings

LONG = "a-name-of-forty-two-characters-unbreakable"
PHONE = Visitor("203.0.113.7", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Safari/605.1.15")
LAPTOP = Visitor("2001:db8::7", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36")


@dataclass(frozen=True)
class Cast:
    """Session cookies by name, and parts of URLs."""

    cookies: dict[str, str]
    token_id: str


def assemble(settings: Settings) -> Cast:
    async def work() -> Cast:
        hub = await open_hub(settings)
        try:
            return await _assemble(hub)
        finally:
            await hub.close()

    return run_blocking(work())


async def _assemble(hub: Hub) -> Cast:
    ada = await _user(hub, "ada", "Ada Lovelace", operator=True)
    bob = await _user(hub, "bob", "بوب السعيد‮ gnp.exe")
    long = await _user(hub, LONG, "A full name of exactly sixty characters, to see it cut off here")
    newcomer = await _user(hub, "newcomer", "", verified=False)
    acme = await _organization(hub, ada, "acme", "Acme Research")
    actor = Actor(ada.name, ada.id, "203.0.113.7", LAPTOP.user_agent)
    await organizations.set_plan(hub.accounts, acme, "enterprise", actor)
    await members.add(hub.accounts, acme, bob, Role.WRITE, actor)
    await members.add(hub.accounts, acme, long, Role.READ, actor)
    await invitations.invite(
        hub.accounts, acme, "someone.with.a.rather.long.address@mail.example.org", Role.READ, actor
    )
    await invitations.invite(hub.accounts, acme, "newcomer", Role.CONTRIBUTOR, actor)
    await _organization(hub, ada, "the-" + LONG[:38], "")
    await own_account.set_profile(hub.accounts, ada, "Ada Lovelace", "https://ada.example.org/notes")
    _, token = await personal.create(hub.accounts, ada, "laptop", TokenRole.WRITE, LAPTOP.ip)
    await personal.create(
        hub.accounts, ada, "a token with a name of many words that has to wrap", TokenRole.READ, PHONE.ip
    )
    await add_apps(hub, ada, bob, acme)
    await add_resources(hub, ada, acme)
    await add_builders(hub, ada)
    await add_repos(hub.repos, ada, bob, acme)
    await add_spaces(hub, ada)
    await add_collections(hub.repos, ada, acme)
    await add_access_requests(hub.repos, ada)
    await add_exchange(hub, acme, actor, [user.email for user in (ada, bob, long)])
    await add_devices(hub)
    await add_webhooks(hub, ada, acme)
    cookies = {user.name: await _session(hub, user, LAPTOP) for user in (ada, bob, newcomer)}
    await _session(hub, ada, PHONE)
    await hub.outbox.finish()
    return Cast(cookies, token.id)


async def _user(hub: Hub, name: str, fullname: str, *, verified: bool = True, operator: bool = False) -> User:
    candidate = Candidate(name, f"{name}@example.org", "correct horse battery", fullname)
    user = await signup.create_by_operator(hub.accounts, candidate, verified=verified, operator=operator)
    found = await store.user(hub.db, user.id)
    assert found is not None
    return found


async def _organization(hub: Hub, admin: User, name: str, fullname: str) -> Organization:
    return await organizations.create(hub.accounts, admin, name, fullname, Actor(admin.name, admin.id, PHONE.ip))


async def _session(hub: Hub, user: User, visitor: Visitor) -> str:
    return await hub.db.write(lambda tx: browser_sessions.start(tx, user.id, visitor, hub.clock()))
