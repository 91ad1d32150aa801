"""Users, organizations and tokens, created by the hub's use cases, and signed-in browsers."""

import email
import email.policy
import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from email.message import EmailMessage
from html import unescape
from pathlib import Path

import httpx
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import signup, store
from hubgate.server.accounts.model import Organization, User, Visitor
from hubgate.server.accounts.organizations import members, settings
from hubgate.server.accounts.roles import Role, TokenRole
from hubgate.server.accounts.sessions import browser_sessions
from hubgate.server.accounts.signup import Candidate, setup_path
from hubgate.server.accounts.tokens import personal
from hubgate.server.accounts.tokens.limits import NewLimit, NewLimits
from hubgate.server.accounts.tokens.model import PersonalToken
from hubgate.server.audit.model import SYSTEM
from hubgate.server.mail import store as mail_store
from hubgate.server.resources import Hub

PASSWORD = "correct horse battery"
VISITOR = Visitor("127.0.0.1", "tests")


def create_user(
    hub: RunningHub, name: str, *, verified: bool = True, operator: bool = False, password: str = PASSWORD
) -> User:
    """Create a user with the email address NAME@example.org."""

    async def work(opened: Hub) -> User:
        candidate = Candidate(name, f"{name.lower()}@example.org", "")
        user = await signup.create_by_operator(opened.accounts, candidate, verified=verified, operator=operator)
        await opened.db.write(lambda tx: store.set_password(tx, user.id, hashed))
        return user

    hashed = _hashed(password)
    return hub.call(work)


@functools.cache
def _hashed(password: str) -> str:
    """A valid hash that is cheap to verify: a hash names its cost, and the hub's own takes 36 ms at each sign-in."""
    return Argon2id(salt=bytes(16), length=32, iterations=1, lanes=1, memory_cost=8).derive_phc_encoded(
        password.encode()
    )


def create_organization(hub: RunningHub, name: str, admin: User, plan: str = "free", **others: str) -> Organization:
    """Create an organization. `others` are additional members with their roles: `bob="write"`."""

    async def work(opened: Hub) -> Organization:
        organization = await settings.create(opened.accounts, admin, name, "", SYSTEM, plan)
        for other, role in others.items():
            user = await store.user_by_name(opened.db, other)
            assert user is not None, other
            await members.add(opened.accounts, organization, user, Role.parse(role), SYSTEM)
        return organization

    return hub.call(work)


def create_token(hub: RunningHub, user: User, role: str = "write", name: str = "test") -> str:
    async def work(opened: Hub) -> str:
        text, _ = await personal.create(opened.accounts, user, name, TokenRole(role), VISITOR.ip)
        return text

    return hub.call(work)


def create_limited_token(
    hub: RunningHub,
    user: User,
    everywhere: Iterable[str] = (),
    places: Iterable[NewLimit] = (),
    *,
    expires_at: int | None = None,
    name: str = "limited",
) -> tuple[str, PersonalToken]:
    """Create a fine-grained token."""

    async def work(opened: Hub) -> tuple[str, PersonalToken]:
        role, limits = TokenRole.FINE_GRAINED, NewLimits(frozenset(everywhere), tuple(places))
        return await personal.create(
            opened.accounts, user, name, role, VISITOR.ip, expires_at=expires_at, limits=limits
        )

    return hub.call(work)


def api(hub: RunningHub, token: str | None = None) -> httpx.Client:
    """An API client with a token."""
    return hub.client(headers={"authorization": f"Bearer {token}"} if token else {})


@dataclass
class Page:
    """A page as a client without JavaScript sees it."""

    response: httpx.Response

    def hidden(self, action: str | None = None) -> dict[str, str]:
        """The hidden fields of the form that posts to `action`, by default of the first form in <main>."""
        text = self.response.text
        start = text.index(f'action="{action}"') if action else text.index("<form", text.index("<main"))
        form = text[start : text.index("</form>", start)]
        found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form)
        return {name: unescape(value) for name, value in found}


def browser_of(hub: RunningHub, user: User | None = None) -> httpx.Client:
    """A browser, signed in as `user`; redirects are not followed."""
    client = hub.client()
    if user is not None:

        async def work(opened: Hub) -> str:
            return await opened.db.write(lambda tx: browser_sessions.start(tx, user.id, VISITOR, opened.clock()))

        client.cookies.set("token", hub.call(work), domain=hub.settings.host)
    return client


def code_on_page(page: str, name: str) -> str:
    """The text of a sample, without the spans that highlight it."""
    (found,) = re.findall(rf'<code id="{name}">(.*?)</code>', page, re.DOTALL)
    return without_highlighting(found)


def without_highlighting(page: str) -> str:
    return unescape(re.sub(r"</?(?:span|mark)\b[^>]*>", "", page))


def submit(client: httpx.Client, page: str, action: str | None = None, **fields: str | list[str]) -> httpx.Response:
    """Fetch `page`, fill a form on it and post it."""
    return fill_form(client, page, action, **fields)()


def fill_form(
    client: httpx.Client, page: str, action: str | None = None, **fields: str | list[str]
) -> Callable[[], httpx.Response]:
    """Fetch `page` and fill a form on it; the returned function posts the form."""
    response = client.get(page)
    assert response.status_code == 200, (page, response.status_code, response.headers.get("location"))
    hidden = Page(response).hidden(action)
    return lambda: client.post(action or page, data={**hidden, **fields})


def post(client: httpx.Client, address: str, **fields: str) -> httpx.Response:
    """Post to an address whose form this browser is not shown, with a valid CSRF token."""
    return client.post(address, data={**Page(client.get("/search")).hidden("/theme"), **fields})


def setup_link(hub: RunningHub) -> str:
    """The path of the link that creates the first operator."""

    async def work(opened: Hub) -> str:
        return setup_path(opened.accounts)

    return hub.call(work)


def wait_for_mail(hub: RunningHub) -> None:
    """Wait until all mail is sent. Mail is queued before the response is sent, so none can follow later."""
    until(lambda: hub.call(lambda opened: opened.db.read_long(mail_store.count)) == 0)


def mails_to(hub: RunningHub, address: str, count: int = 1) -> list[EmailMessage]:
    """All mail to an address, at least `count`; oldest first if the clock was advanced in between."""
    wait_for_mail(hub)
    files = sorted((hub.settings.data_dir / "mail").glob("*.eml"), key=_written)
    mails = [email.message_from_bytes(file.read_bytes(), policy=email.policy.default) for file in files]
    found = [mail for mail in mails if mail["To"] == address]
    assert len(found) >= count, f"{len(found)} of {count} mails to {address}"
    return found


def _written(file: Path) -> tuple[str, int]:
    """The time in the mail's id, then the file's mtime, whose resolution alone is too low."""
    return file.name[:13], file.stat().st_mtime_ns


def link_in(mail: EmailMessage) -> str:
    """The path of the link in a mail, which is always a link to the hub."""
    found = re.search(r"https?://[^/\s]+(/\S+)", mail.get_content())
    assert found, mail.get_content()
    return found.group(1)
