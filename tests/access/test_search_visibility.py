"""Nothing private appears in a search: for every caller, a search finds exactly what the caller can open."""

import contextlib
import re
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import httpx
from tests.bed.apps import create_app, token_of
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User

SCOPES = ("openid", "profile", "read-repos", "contribute-repos", "read-collections")
REPOS = (("model", "open"), ("model", "gated"), ("model", "closed"), ("dataset", "closed"))
# Part of every name, title, description, tag and card, so that each search could find everything.
WORD = "zanzibar"
CARD = f"---\ntags: [{WORD}]\n---\nOn {WORD} and islandhood\n".encode()
# Parts and whole names, owners, a word of cards only.
QUERIES = ("anziba", f"acme/{WORD}-closed", f"ada {WORD} closed", f"islandhood {WORD}")
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


@contextlib.contextmanager
def callers(hub: RunningHub) -> Iterator[Callers]:
    """Every kind of caller. Rob was an admin of acme and left; pat and ada are members."""
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
        assert owner.delete("/api/organizations/acme/members/rob").status_code == 200
        people["olga"] = create_user(hub, "olga", operator=True)
        users: dict[str, User | None] = {"a stranger": None, **people}
        yield Callers(
            owner,
            {name: stack.enter_context(api(hub, token)) for name, token in tokens.items()},
            {name: stack.enter_context(browser_of(hub, user)) for name, user in users.items()},
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
        things = create_things(each.owner)
        check_searches(each, things)
        exchange_visibility(each.owner, things)
        check_searches(each, things)


def check_searches(each: Callers, things: dict[str, Thing]) -> None:
    seen = {}
    for name, client in each.tokens.items():
        opened = {key for key, thing in things.items() if client.get(thing.address).status_code == 200}
        assert found_by(client, WORD) == opened, name
        for query in QUERIES:
            assert found_by(client, query) <= opened, (name, query)
        repos = {key for key in opened if key.startswith(("model", "dataset"))}
        assert listed_for(client, search=WORD) == listed_for(client, filter=WORD) == repos, name
        seen[name] = len(opened)
    for name, client in each.sessions.items():
        opened = {key for key, thing in things.items() if client.get(thing.page).status_code == 200}
        assert found_on_pages(client, things, WORD) == opened, name
        for query in QUERIES[:2]:
            assert found_on_pages(client, things, query) <= opened, (name, query)
        assert len(opened) == seen.get(name, seen["a stranger"]), name
    # The callers differ, and the owner finds everything.
    assert seen["a stranger"] == seen["rob"] == seen["ada's app with profile in acme"]
    assert seen["a stranger"] < seen["pat"] < seen["ada"] == len(things)
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
