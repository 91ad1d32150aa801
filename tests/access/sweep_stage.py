"""A hub with objects of every kind that belong to others, and all kinds of callers who might try to reach them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import httpx
from tests.bed.apps import Client, approve, create_app, pkce_pair, redirect_parameters
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import (
    Page,
    api,
    browser_of,
    create_limited_token,
    create_organization,
    create_token,
    create_user,
)
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.webhooks import settle

from hubgate.server.access.identity import Identity
from hubgate.server.access.resource import Account, Organization, Repo
from hubgate.server.accounts import operator_actions
from hubgate.server.accounts.model import Organization as OrganizationRow
from hubgate.server.accounts.model import User
from hubgate.server.accounts.organizations import members
from hubgate.server.accounts.roles import Role, TokenRole
from hubgate.server.accounts.tokens.limits import (
    EVERYWHERE_SCOPES,
    ORG,
    OWNER_SCOPES,
    REPO,
    REPO_SCOPES,
    NewLimit,
    own_account,
)
from hubgate.server.audit.model import SYSTEM
from hubgate.server.resources import Hub
from hubgate.server.scopes import SCOPE_NAMES

Roles = Mapping[str, Role]

RECEIVER = "https://receiver.example/hook"


@dataclass(frozen=True)
class Sender:
    """A caller with one credential. `works` is False if the credential itself is rejected."""

    name: str
    identity: Identity
    headers: dict[str, str]
    csrf: str = ""
    works: bool = True
    # A token of vic: what it may not do is refused because of its limits.
    is_owners: bool = False

    @property
    def is_browser(self) -> bool:
        return bool(self.csrf)


@dataclass(frozen=True)
class Stage:
    """Everything belongs to vic: her own account, and the organization acme of which she is the admin."""

    hub: RunningHub
    vic: User
    acme_id: str
    # By the plural of its type: an organization's private model, a user's private dataset, a public space.
    repos: dict[str, tuple[str, Repo]]
    # By the name of the repo: the first comment of its pull request.
    comments: dict[str, str]
    # Values of path parameters that name the organization's private collection and its item.
    collection: dict[str, str]
    # The values of path parameters, in vic's account and in her organization.
    own: dict[str, str]
    organizations: dict[str, str]
    senders: list[Sender]
    # Credentials of the owner of everything.
    owners: list[Sender]

    @property
    def admins_elsewhere(self) -> list[Sender]:
        """Credentials of eve, the admin of `club`, that allow everything she may do."""
        return [sender for sender in self.senders if sender.name in ("stranger's session", "stranger's write token")]


def stage(hub: RunningHub) -> Stage:
    vic, fred, rita, carl = (create_user(hub, name) for name in ("vic", "fred", "rita", "carl"))
    acme = create_organization(hub, "acme", vic, rita="read", carl="contributor", fred="write")
    token = create_token(hub, vic)
    owners = [
        Sender("owner's token", Identity.personal(vic.id, {}, role=TokenRole.WRITE), _bearer(token)),
        _browser(hub, vic, "owner's session", {acme.id: Role.ADMIN}),
    ]
    with api(hub, token) as client:
        repos = dict(_repos(client, vic, acme.id))
        comments = {name: _first_comment(client, kind, name) for kind, (name, _) in repos.items()}
        collection = _collection(client)
        own = _belongings(hub, client, vic, "/api/settings")
        organizations = _belongings(hub, client, vic, "/api/organizations/acme/settings")
    senders = [*_senders(hub, acme, fred, rita, carl), *_limited_senders(hub, vic, rita, acme.id, repos)]
    return Stage(hub, vic, acme.id, repos, comments, collection, own, organizations, senders, owners)


def _first_comment(client: httpx.Client, kind: str, name: str) -> str:
    first: str = client.get(f"/api/{kind}/{name}/discussions/1").json()["events"][0]["id"]
    return first


def _repos(client: httpx.Client, vic: User, acme_id: str) -> Iterator[tuple[str, tuple[str, Repo]]]:
    for repo_type, name, owner in (
        ("model", "acme/secret", Organization(acme_id)),
        ("dataset", "vic/secret", Account(vic.id)),
        ("space", "acme/open", Organization(acme_id)),
    ):
        private = name.endswith("secret")
        # A Space that the hub would run.
        of_space = {"sdk": "gradio"} if repo_type == "space" else {}
        create_repo(client, name, repo_type, private=private, **of_space)
        create_commit(client, name, {"config.json": b"{}"}, repo_type=repo_type)
        create_commit(client, name, {"idea.json": b"{}"}, repo_type=repo_type, query="?create_pr=1")
        for kind in ("branch", "tag"):
            body = {"tag": "v1"} if kind == "tag" else {}
            rev = "main" if kind == "tag" else "side"
            assert client.post(f"/api/{repo_type}s/{name}/{kind}/{rev}", json=body).status_code == 200
        repo_id = client.get(f"/api/{repo_type}s/{name}").json()["_id"]
        label = f"{repo_type} {name}"
        yield f"{repo_type}s", (name, Repo(owner, private=private, creator_id=vic.id, label=label, id=repo_id))


def _collection(client: httpx.Client) -> dict[str, str]:
    created = client.post("/api/collections", json={"title": "Secret plans", "namespace": "acme", "private": True})
    assert created.status_code == 200, created.text
    owner, slug = created.json()["slug"].split("/")
    item = {"item": {"id": "acme/secret", "type": "model"}}
    filled = client.post(f"/api/collections/{owner}/{slug}/items", json=item)
    assert filled.status_code == 200, filled.text
    return {"owner": owner, "slug": slug, "item": filled.json()["items"][0]["_id"]}


def _belongings(hub: RunningHub, client: httpx.Client, vic: User, at: str) -> dict[str, str]:
    """The values of parameters in paths below `at`: `{id}` is named after the segment before it."""
    asked = {"name": "Notebook", "redirectUris": ["https://app.example/callback"], "scopes": ["openid"]}
    app = client.post(f"{at}/applications", json=asked)
    assert app.status_code == 201, app.text
    protected = {"identifier": f"https://mcp-{at.count('/')}.invalid/", "name": "Toolbox"}
    resource = client.post(f"{at}/resources", json=protected)
    assert resource.status_code == 201, resource.text
    watched = [{"type": "user", "name": "vic"}]
    webhook = client.post(f"{at}/webhooks", json={"url": RECEIVER, "watched": watched, "secret": "s3cret"})
    assert webhook.status_code == 200, webhook.text
    hook = webhook.json()["webhook"]["id"]
    create_repo(client, f"vic/change-{at.count('/')}")
    settle(hub)
    return {
        "client_id": app.json()["clientId"],
        "resources": resource.json()["id"],
        "webhooks": hook,
        "delivery": client.get(f"{at}/webhooks/{hook}/logs").json()[0]["id"],
        "tokens": client.get("/api/settings/tokens").json()[0]["id"],
        "sessions": client.get("/api/settings/sessions").json()[0]["id"],
    }


def _senders(hub: RunningHub, acme: OrganizationRow, fred: User, rita: User, carl: User) -> Iterator[Sender]:
    """Everyone but vic: `rita` and `carl` have lower roles, `fred` is leaving, `eve` is a stranger."""
    eve = create_user(hub, "eve")
    club = create_organization(hub, "club", eve)
    in_club = {club.id: Role.ADMIN}
    yield _browser(hub, None, "anonymous", {})
    yield Sender("anonymous program", Identity.anonymous(), {})
    for user, what, roles in (
        (eve, "stranger", in_club),
        (rita, "read member", {acme.id: Role.READ}),
        (carl, "contributor", {acme.id: Role.CONTRIBUTOR}),
        (fred, "former member", {}),
    ):
        yield _browser(hub, user, f"{what}'s session", roles)
        for role in (TokenRole.READ, TokenRole.WRITE):
            identity = Identity.personal(user.id, roles, role=role)
            yield Sender(f"{what}'s {role.value} token", identity, _bearer(create_token(hub, user, role.value)))
    everything = tuple(sorted(SCOPE_NAMES))
    app = create_app(hub, eve, name="Everything", scopes=everything)
    for scopes in [*((name,) for name in everything), everything]:
        yield _consented(app, eve, in_club, scopes, [])
    yield _consented(app, rita, {acme.id: Role.READ}, everything, [acme.id])
    yield _consented(app, rita, {acme.id: Role.READ}, ("openid",), [acme.id])
    yield _consented(app, fred, {}, everything, [acme.id])
    exchanger = create_exchange_app(hub, club, scopes=everything)
    given = exchange_token(exchanger, "eve@example.org")
    fenced = Identity.exchanged(
        eve.id, in_club, client_id=exchanger.id, scopes=given["scope"].split(), organization=club.id
    )
    yield Sender("exchanged token", fenced, _bearer(given["access_token"]))
    dora = create_user(hub, "dora")
    yield replace(_browser(hub, dora, "disabled user's session", {}), identity=Identity.anonymous())
    yield Sender("disabled user's token", Identity.anonymous(), _bearer(create_token(hub, dora)), works=False)

    async def take_away(opened: Hub) -> None:
        await operator_actions.disable(opened.accounts, dora)
        await members.remove(opened.accounts, acme, fred, SYSTEM)

    hub.call(take_away)


def _limited_senders(
    hub: RunningHub, vic: User, rita: User, acme_id: str, repos: dict[str, tuple[str, Repo]]
) -> Iterator[Sender]:
    """Fine-grained tokens, each with every scope in a place; vic herself may do everything."""
    annex = create_organization(hub, "annex", vic)
    roles = {acme_id: Role.ADMIN, annex.id: Role.ADMIN}
    dataset = repos["datasets"][1]
    elsewhere = [NewLimit(ORG, annex.id, annex.id, frozenset(OWNER_SCOPES))]
    reading = frozenset({"read-repos", "read-collections", "read-billing"})
    for name, user, held, everywhere, places in (
        ("another organization", vic, roles, frozenset(EVERYWHERE_SCOPES), elsewhere),
        ("one repo", vic, roles, frozenset(), [NewLimit(REPO, dataset.id, vic.id, frozenset(REPO_SCOPES))]),
        ("reading in acme", vic, roles, frozenset(), [NewLimit(ORG, acme_id, acme_id, reading)]),
        ("the own account", vic, roles, frozenset(), [own_account(vic, OWNER_SCOPES)]),
        ("acme, by a reader", rita, {acme_id: Role.READ}, frozenset(),
         [NewLimit(ORG, acme_id, acme_id, frozenset(OWNER_SCOPES))]),
    ):  # fmt: skip
        text, token = create_limited_token(hub, user, everywhere, places)
        identity = Identity.fine_grained(
            user.id,
            held,
            token_id=token.id,
            scopes=everywhere,
            owners={place.target_id: place.scopes for place in places if place.kind != REPO},
            repos={place.target_id: place.scopes for place in places if place.kind == REPO},
        )
        yield Sender(f"token limited to {name}", identity, _bearer(text), is_owners=user is vic)


def _consented(app: Client, user: User, roles: Roles, scopes: Sequence[str], organizations: list[str]) -> Sender:
    verifier, challenge = pkce_pair()
    address = app.address(
        scope=" ".join(scopes), code_challenge=challenge, code_challenge_method="S256", prompt="consent"
    )
    with browser_of(app.hub, user) as browser:
        code = redirect_parameters(approve(browser, address, orgs=organizations))["code"]
    given = app.redeem(code, code_verifier=verifier).json()
    granted = dict.fromkeys(organizations, frozenset(scopes))
    identity = Identity.consented(user.id, roles, client_id=app.id, scopes=scopes, organizations=granted)
    what = scopes[0] if len(scopes) == 1 else "every scope"
    return Sender(f"{user.name}'s app with {what}", identity, _bearer(given["access_token"]))


def _browser(hub: RunningHub, user: User | None, name: str, roles: Roles) -> Sender:
    identity = Identity.session(user.id, roles) if user else Identity.anonymous()
    with browser_of(hub, user) as client:
        csrf = Page(client.get("/search")).hidden("/theme")["csrf"]
        cookies = "; ".join(f"{cookie}={value}" for cookie, value in client.cookies.items())
    return Sender(name, identity, {"cookie": cookies}, csrf)


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}
