"""Fills the demo's hub: accounts and apps by the use cases of `hubgate admin`, the rest over the API, a month ago on.

The month is lived through in order, with the clock of `past_hub.py`: the commits of a day, their deliveries to a
receiver that sometimes fails, and the retries. So every row is one that the hub itself wrote.
"""

import json

from hubgate.demo import content
from hubgate.demo.past_hub import PastHub, open_past_hub
from hubgate.demo.past_receiver import PastReceiver
from hubgate.demo.state import WEBHOOKS, State
from hubgate.server.accounts import signup
from hubgate.server.accounts.model import Organization, Owner, User
from hubgate.server.accounts.organizations import members
from hubgate.server.accounts.organizations import settings as organizations
from hubgate.server.accounts.roles import Role, TokenRole
from hubgate.server.accounts.tokens import personal
from hubgate.server.audit.model import SYSTEM
from hubgate.server.clock import DAY, HOUR, MINUTE, system_clock
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps.model import App, ExchangeSettings
from hubgate.server.settings import Settings

# Less than the retention of deliveries, so that all of it is still there tomorrow.
DAYS = 28
FULLNAMES = {"ada": "Ada Okafor", "lin": "Lin Berg"}
# Days on which Lin proposes rows in a pull request, because contributors do not write to repos of others.
_LIN_PROPOSES = (6, 15)
APP_SCOPES = ("openid", "profile", "email", "read-repos")


async def seed(settings: Settings, state: State, app_url: str, receiver_url: str, receiver: PastReceiver) -> None:
    """Fill the hub. `receiver` listens at `receiver_url` and answers as the receivers of the past did."""
    async with open_past_hub(settings) as past:
        end = system_clock()
        past.clock.now = end - DAYS * DAY
        users, acme = await _create_accounts(past, state)
        await _create_apps(past, state, users, acme, app_url)
        await _create_repos(past, state)
        await _create_webhooks(past, state, receiver_url)
        for day in range(DAYS):
            await _live_through(past, state, day, end - (DAYS - day) * DAY, receiver)
        await past.deliver_until(end)
        await past.draw_charts()


async def _create_accounts(past: PastHub, state: State) -> tuple[dict[str, User], Organization]:
    accounts, users = past.hub.accounts, dict[str, User]()
    for name, password in state.passwords.items():
        candidate = signup.Candidate(name, f"{name}@example.org", password, FULLNAMES[name])
        users[name] = await signup.create_by_operator(accounts, candidate, verified=True, operator=name == "ada")
        state.tokens[name], _ = await personal.create(accounts, users[name], "demo", TokenRole.WRITE, "127.0.0.1")
    acme = await organizations.create(accounts, users["ada"], "acme", "Acme Research", SYSTEM, "enterprise")
    await members.add(accounts, acme, users["lin"], Role.CONTRIBUTOR, SYSTEM)
    return users, acme


async def _create_apps(past: PastHub, state: State, users: dict[str, User], acme: Organization, app_url: str) -> None:
    desk = App(
        client_id="",
        name="Review Desk",
        homepage=app_url,
        redirect_uris=(f"{app_url}/callback",),
        scopes=APP_SCOPES,
        confidential=True,
    )
    created, secret = await management.create(past.hub.oauth, Owner(user_id=users["lin"].id), desk, SYSTEM)
    state.app_id, state.app_secret = created.client_id, secret or ""
    nightly = App(
        client_id="",
        name="Nightly jobs",
        scopes=("read-repos",),
        confidential=True,
        exchange=ExchangeSettings(privileged=True),
    )
    created, secret = await management.create(past.hub.oauth, Owner(org_id=acme.id), nightly, SYSTEM)
    state.exchange_id, state.exchange_secret = created.client_id, secret or ""


async def _create_repos(past: PastHub, state: State) -> None:
    ada = state.tokens["ada"]
    repos: tuple[tuple[str, str, dict[str, object]], ...] = (
        (content.SENTIMENT, "model", {"license": "apache-2.0"}),
        (content.LARGE, "model", {}),
        (content.REVIEWS, "dataset", {"license": "cc-by-4.0"}),
        (content.NOTES, "model", {"private": True}),
    )
    for name, kind, more in repos:
        namespace, _, short = name.partition("/")
        owner = None if namespace == "ada" else namespace
        body = {"name": short, "organization": owner, "type": kind, **more}
        await past.api.call("POST", "/api/repos/create", ada, body)
    weights = bytes(range(256)) * 256
    first = "First version"
    model: dict[str, str | bytes] = {
        "README.md": content.SENTIMENT_CARD,
        "config.json": content.CONFIG,
        "model.bin": weights,
    }
    await past.api.commit(content.SENTIMENT, ada, first, model)
    await past.api.commit(content.LARGE, ada, first, {**model, "README.md": content.LARGE_CARD})
    await past.api.call("PUT", f"/api/models/{content.LARGE}/settings", ada, {"gated": "manual"})
    files: dict[str, str | bytes] = {"README.md": content.REVIEWS_CARD, "data/day-00.csv": content.rows_of_day(0)}
    await past.api.commit(content.REVIEWS, ada, first, files, kind="dataset")
    await past.api.commit(content.NOTES, ada, first, {"README.md": content.NOTES_CARD})


async def _create_webhooks(past: PastHub, state: State, receiver_url: str) -> None:
    watched = {"train": ("dataset", content.REVIEWS), "chat": ("org", "acme")}
    for name, (kind, target) in watched.items():
        body = {
            "url": f"{receiver_url}/webhooks/{name}",
            "watched": [{"type": kind, "name": target}],
            "secret": state.webhook_secret,
        }
        answer = await past.api.call("POST", WEBHOOKS[name], state.tokens["ada"], body)
        state.webhooks[name] = answer["webhook"]["id"]


async def _live_through(past: PastHub, state: State, day: int, midnight: int, receiver: PastReceiver) -> None:
    """One day: new rows, sometimes other changes, and deliveries with the troubles of that day."""
    ada, lin = state.tokens["ada"], state.tokens["lin"]
    receiver.begin_day(day)
    # Weekends are quieter.
    for number in range(1 if day % 7 in (2, 3) else 3 + day % 3):
        await past.deliver_until(midnight + (7 + 3 * number) * HOUR + day * MINUTE)
        path = f"data/day-{day + 1:02}{'abcde'[number]}.csv"
        rows = {path: content.rows_of_day(day + number)}
        summary = f"Reviews of day {day + 1}"
        if number == 1 and day in _LIN_PROPOSES:
            await past.api.commit(content.REVIEWS, lin, summary, rows, kind="dataset", create_pr="1")
        else:
            await past.api.commit(content.REVIEWS, ada, summary, rows, kind="dataset")
    await past.deliver_until(midnight + 22 * HOUR)
    if day % 7 == 4:
        result = json.dumps({"accuracy": round(0.86 + day / 500, 3)}, indent=2)
        await past.api.commit(content.SENTIMENT, ada, f"Trained on {content.REVIEWS}", {"training.json": result})
    if day == 12:
        await _talk(past, ada, lin)
    if day == 20:
        await _propose(past, ada, lin)
    if day == 22:
        await _collect(past, ada)
    if day == DAYS - 2:
        await past.api.call("POST", f"/api/models/{content.LARGE}/ask-access", lin, {"fields": {}})


async def _talk(past: PastHub, ada: str, lin: str) -> None:
    at = f"/api/models/{content.SENTIMENT}/discussions"
    question = {"title": "German reviews", "description": "Accuracy drops for German. Is **more data** planned?"}
    opened = await past.api.call("POST", at, lin, question)
    past.clock.now += 40 * MINUTE
    answer = "Yes: `acme/reviews` gets German rows from next week on."
    await past.api.call("POST", f"{at}/{opened['num']}/comment", ada, {"comment": answer})


async def _propose(past: PastHub, ada: str, lin: str) -> None:
    files: dict[str, str | bytes] = {"config.json": content.FASTER_CONFIG}
    await past.api.commit(content.SENTIMENT, lin, "Cache the vocabulary", files, create_pr="1")
    past.clock.now += 25 * MINUTE
    found = await past.api.call("GET", f"/api/models/{content.SENTIMENT}/discussions", ada)
    number = max(each["num"] for each in found["discussions"])
    text = "Loading takes half the time here. Ready to merge."
    await past.api.call("POST", f"/api/models/{content.SENTIMENT}/discussions/{number}/comment", ada, {"comment": text})


async def _collect(past: PastHub, ada: str) -> None:
    body = {"title": "Review analysis", "namespace": "acme", "description": "Everything about reviews, in one place."}
    created = await past.api.call("POST", "/api/collections", ada, body)
    notes = {content.SENTIMENT: "Start here.", content.LARGE: "Better, on request.", content.REVIEWS: "The data."}
    for name, note in notes.items():
        kind = "dataset" if name == content.REVIEWS else "model"
        item = {"item": {"type": kind, "id": name}, "note": note}
        await past.api.call("POST", f"/api/collections/{created['slug']}/items", ada, item)
