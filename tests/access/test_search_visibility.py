"""Nothing private appears in a search: for every caller, a search finds exactly what the caller can open."""

import contextlib
import re
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import httpx
from tests.bed.apps import create_app, token_of
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import (
    api,
    browser_of,
    create_limited_token,
    create_organization,
    create_token,
    create_user,
)
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.tokens.limits import ORG, REPO, NewLimit, own_account

SCOPES = ("openid", "profile", "read-repos", "contribute-repos", "read-collections")
REPOS = (("model", "open"), ("model", "gated"), ("model", "closed"), ("dataset", "closed"))
# Part of every name, title, description, tag and card, so that each search could find everything.
WORD = "zanzibar"
CARD = f"---\ntags: [{WORD}]\n---\nOn {WORD} and islandhood\n".encode()
# Parts and whole names, owners, a word of cards only.
QUERIES = ("anziba", f"acme/{WORD}-closed", f"ada {WORD} closed", f"islandhood {WORD}")
# The repos of fine-grained tokens, and the one that such a token creates.
CHOSEN_REPOS = (("model", f"acme/{WORD}-gated"), ("model", f"acme/{WORD}-closed"), ("dataset", f"ada/{WORD}-closed"))
CREATED = f"acme/{WORD}-created"
KINDS = ("", "repos", "collections", "discussions")


class Thing(NamedTuple):
    """What a search could find: its address in the API, which tokens can open, and its page, for sessions."""

    address: str
    page: str


def create_things(owner: httpx.Client) -> dict[str, Thing]:
    """For ada and acme: open, gated and closed repos with cards and a discussion each, and two collections."""
    things = {}
    for namespace, (kind, visibility) in product(("ada", "acme"), REPOS):
        name = f"{namespace}/{WORD}-{visibility}"
        path, page = f"/api/{kind}s/{name}", f"/{'' if kind == 'model' else 'datasets/'}{name}"
        create_repo(owner, name, kind, private=visibility == "closed")
        create_commit(owner, name, {"README.md": CARD}, repo_type=kind)
        if visibility == "gated":
            assert owner.put(f"{path}/settings", json={"gated": "manual"}).status_code == 200
        title = f"About {WORD} in {namespace} {kind} {visibility}"
        assert owner.post(f"{path}/discussions", json={"title": title, "description": "x"}).status_code == 200
        things[f"{kind} {name}"] = Thing(path, page)
        things[f"discussion {title}"] = Thing(f"{path}/discussions/1", f"{page}/discussions/1")
    for namespace, private in product(("ada", "acme"), (False, True)):
        title = f"{WORD} {namespace} {'closed' if private else 'open'}"
        body = {"title": title, "namespace": namespace, "private": private, "description": WORD}
        slug = owner.post("/api/collections", json=body).json()["slug"]
        things[f"collection {title}"] = Thing(f"/api/collections/{slug}", f"/collections/{slug}")
    return things


class Callers(NamedTuple):
    owner: httpx.Client
    tokens: dict[str, httpx.Client]
    sessions: dict[str, httpx.Client]
    things: dict[str, Thing]


def places(owner: httpx.Client, user: User, acme: Organization) -> dict[str, NewLimit]:
    """The limits of fine-grained tokens: one repo each, an owner each, and permissions that show no private repo."""
    limits = {}
    for kind, name in CHOSEN_REPOS:
        repo_id = owner.get(f"/api/{kind}s/{name}").json()["_id"]
        owner_id = acme.id if name.startswith("acme/") else user.id
        limits[f"{kind} {name}"] = NewLimit(REPO, repo_id, owner_id, frozenset({"read-repos"}))
    for scope in ("read-repos", "read-collections", "contribute-repos"):
        limits[f"{scope} in acme"] = NewLimit(ORG, acme.id, acme.id, frozenset({scope}))
    limits["read-repos of its user"] = own_account(user, ["read-repos"])
    return limits


def limited_tokens(hub: RunningHub, owner: httpx.Client, ada: User, rob: User, acme: Organization) -> dict[str, str]:
    """Fine-grained tokens of ada, and of rob for acme."""
    tokens = {"ada's token with only profile": create_limited_token(hub, ada, ["profile"])[0]}
    for name, limit in places(owner, ada, acme).items():
        tokens[f"ada's token with {name}"] = create_limited_token(hub, ada, places=[limit])[0]
        if limit.owner_id == acme.id:
            tokens[f"rob's token with {name}"] = create_limited_token(hub, rob, places=[limit])[0]
    return tokens


@contextlib.contextmanager
def callers(hub: RunningHub) -> Iterator[Callers]:
    """Every kind of caller, and what they search. Rob was an admin of acme and left; pat and ada are members."""
    people = {name: create_user(hub, name) for name in ("ada", "bob", "rob", "pat")}
    ada, rob = people["ada"], people["rob"]
    acme = create_organization(hub, "acme", ada, "enterprise", rob="admin", pat="read")
    # A consent covers all tokens of an app: another app is granted acme.
    app, app_in_acme = create_app(hub, scopes=SCOPES), create_app(hub, scopes=SCOPES)
    exchanging = create_exchange_app(hub, acme, scopes=SCOPES)
    tokens: dict[str, str | None] = {"a stranger": None}
    tokens |= {name: create_token(hub, user, "read") for name, user in people.items()}
    for scope in SCOPES[1:]:
        tokens[f"ada's app with {scope}"] = token_of(app, ada, scope)
        tokens[f"ada's app with {scope} in acme"] = token_of(app_in_acme, ada, scope, acme)
        tokens[f"rob's app with {scope} in acme"] = token_of(app_in_acme, rob, scope, acme)
        exchanged = exchange_token(exchanging, "ada@example.org", scope=f"openid {scope}")
        tokens[f"a token exchanged for ada with {scope}"] = exchanged["access_token"]
    with contextlib.ExitStack() as stack:
        owner = stack.enter_context(api(hub, create_token(hub, ada)))
        things = create_things(owner)
        tokens |= limited_tokens(hub, owner, ada, rob, acme)
        with api(hub, tokens["ada's token with contribute-repos in acme"]) as creator:
            create_repo(creator, CREATED, private=True)
            create_commit(creator, CREATED, {"README.md": CARD})
        things[f"model {CREATED}"] = Thing(f"/api/models/{CREATED}", f"/{CREATED}")
        assert owner.delete("/api/organizations/acme/members/rob").status_code == 200
        people["olga"] = create_user(hub, "olga", operator=True)
        users: dict[str, User | None] = {"a stranger": None, **people}
        yield Callers(
            owner,
            {name: stack.enter_context(api(hub, token)) for name, token in tokens.items()},
            {name: stack.enter_context(browser_of(hub, user)) for name, user in users.items()},
            things,
        )


def found_by(client: httpx.Client, query: str) -> set[str]:
    answer = client.get("/api/quicksearch", params={"q": query, "limit": 20})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    repos = {f"{kind} {repo['id']}" for kind in ("model", "dataset") for repo in found[f"{kind}s"]}
    collections = {f"collection {each['title']}" for each in found["collections"]}
    return repos | collections | {f"discussion {each['title']}" for each in found["discussions"]}


def listed_for(client: httpx.Client, **query: str) -> set[str]:
    lists = {kind: client.get(f"/api/{kind}s", params=query).json() for kind in ("model", "dataset")}
    return {f"{kind} {repo['id']}" for kind, repos in lists.items() for repo in repos}


def found_on_pages(client: httpx.Client, things: dict[str, Thing], query: str) -> set[str]:
    pages = [client.get("/search", params={"q": query, "type": kind}) for kind in KINDS]
    assert {page.status_code for page in pages} == {200}
    links = {link for page in pages for link in re.findall('href="([^"]+)"', page.text)}
    return {name for name, thing in things.items() if thing.page in links}


def test_search_finds_exactly_what_the_caller_can_open(hub: RunningHub) -> None:
    with callers(hub) as each:
        seen = check_searches(each, each.things)
        assert all(seen["a stranger"] == seen[name] for name in seen if name.startswith("rob"))
        for kind, name in CHOSEN_REPOS[1:]:
            found = seen[f"ada's token with {kind} {name}"] - seen["a stranger"]
            assert {each.removeprefix(f"{kind} ") for each in found if not each.startswith("discussion")} == {name}
            assert len(found) == 2, "its discussion"
        assert seen["ada's token with contribute-repos in acme"] - seen["a stranger"] == {f"model {CREATED}"}
        check_differences(seen, each.things)
        exchange_visibility(each.owner, each.things)
        check_differences(check_searches(each, each.things), each.things)
        remove_models(each.owner, each.things)
        for name, client in each.tokens.items():
            assert found_by(client, WORD) <= set(each.things), name


def check_searches(each: Callers, things: dict[str, Thing]) -> dict[str, set[str]]:
    """Compare what each caller finds with what they can open; return what each token can open."""
    seen = {}
    for name, client in each.tokens.items():
        opened = {key for key, thing in things.items() if client.get(thing.address).status_code == 200}
        assert found_by(client, WORD) == opened, name
        for query in QUERIES:
            assert found_by(client, query) <= opened, (name, query)
        repos = {key for key in opened if key.startswith(("model", "dataset"))}
        assert listed_for(client, search=WORD) == listed_for(client, filter=WORD) == repos, name
        on_pages = client.get("/").text + client.get("/search", params={"q": WORD}).text
        assert {key for key, thing in things.items() if f'href="{thing.page}"' in on_pages} <= opened, name
        seen[name] = opened
    for name, client in each.sessions.items():
        opened = {key for key, thing in things.items() if client.get(thing.page).status_code == 200}
        assert found_on_pages(client, things, WORD) == opened, name
        for query in QUERIES[:2]:
            assert found_on_pages(client, things, query) <= opened, (name, query)
        assert opened == seen.get(name, seen["a stranger"]), name
    return seen


def check_differences(seen: dict[str, set[str]], things: dict[str, Thing]) -> None:
    """The callers differ, and the owner finds everything."""
    assert seen["a stranger"] == seen["rob"] == seen["ada's app with profile in acme"]
    assert seen["a stranger"] < seen["pat"] < seen["ada"] == set(things)
    assert seen["ada's app with read-repos"] < seen["ada's app with read-repos in acme"] < seen["ada"]


def exchange_visibility(owner: httpx.Client, things: dict[str, Thing]) -> None:
    """Make what was open private and what was closed public, and exchange the owners of the gated models."""
    for key, thing in things.items():
        if key.endswith((" closed", " open")) and key.startswith("collection"):
            assert owner.patch(thing.address, json={"private": key.endswith("open")}).status_code == 200
        elif key.endswith(("-closed", "-open")):
            assert owner.put(f"{thing.address}/settings", json={"private": key.endswith("open")}).status_code == 200
    for source, target in (("ada", "acme"), ("acme", "ada")):
        moved = {"fromRepo": f"{source}/{WORD}-gated", "toRepo": f"{target}/{WORD}-of-{source}", "type": "model"}
        assert owner.put(f"/api/models/{moved['fromRepo']}/settings", json={"private": True}).status_code == 200
        assert owner.post("/api/repos/move", json=moved).status_code == 200
        del things[f"model {moved['fromRepo']}"]
        address, page = f"/api/models/{moved['toRepo']}", f"/{moved['toRepo']}"
        things[f"model {moved['toRepo']}"] = Thing(address, page)
        things[f"discussion About {WORD} in {source} model gated"] = Thing(
            f"{address}/discussions/1", f"{page}/discussions/1"
        )


def remove_models(owner: httpx.Client, things: dict[str, Thing]) -> None:
    for name in [name for name in things if name.startswith("model ")]:
        namespace, _, repo = name.removeprefix("model ").partition("/")
        body = {"name": repo, "organization": namespace, "type": "model"}
        assert owner.request("DELETE", "/api/repos/delete", json=body).status_code == 200
        del things[name]
    for name in [name for name, thing in things.items() if thing.address.startswith("/api/models/")]:
        del things[name]
