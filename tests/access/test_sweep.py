"""Every route with every kind of credential on resources of others: each answer matches the policy (O77).

The routes are the app's, the requests would work for the owner, and the expectation is the policy's decision on the
route's declared action. Nothing that belongs to others changes.
"""

from collections.abc import Iterator
from functools import partial

import pytest
from tests.access.light_client import Answer, LightClient, light_client
from tests.access.sweep_requests import decision, names_anothers, names_by_id, of_organization, request
from tests.access.sweep_stage import Sender, Stage, stage
from tests.bed.people import wait_for_mail
from tests.bed.running_hub import RunningHub

from hubgate.server.access.actions import Action
from hubgate.server.access.decision import Decision
from hubgate.server.app import build_app
from hubgate.server.edge.routes import Route
from hubgate.server.http.surface import Surface
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx

# These columns record the last use; all others must not change.
_COLUMNS = {"access_tokens": "id, user_id, name, role", "sessions": "id, user_id"}


@pytest.mark.one_engine
def test_every_route_answers_as_the_policy_decides(hub: RunningHub) -> None:
    staged = stage(hub)
    wait_for_mail(hub)
    before, routes = contents(hub), routes_of(hub)
    with light_client(hub) as client:
        wrong = [line for route in routes for line in mistakes(client, staged, route)]
        wrong += [line for route in routes for line in borrowed(client, staged, route)]
        assert not wrong, f"{len(wrong)} wrong answers:\n" + "\n".join(wrong[:40])
        assert contents(hub) == before
        # Each request works for the owner: otherwise it may be rejected for another reason.
        in_order = sorted(routes, key=lambda route: (ends_something(route), route.path))
        malformed = [line for route in in_order for line in complaints(client, staged, route)]
    assert not malformed, "\n".join(malformed)


def mistakes(client: LightClient, staged: Stage, route: Route) -> Iterator[str]:
    for sender in filter(partial(is_for, route), staged.senders):
        said = decision(route, staged, sender)
        if said.allowed and not may_be_sent(route, sender):
            continue
        answer = client.request(**request(route, staged, sender)._asdict())
        if not is_expected(route, sender, said, answer):
            expected = "allowed" if said.allowed else f"refused: {said.reason}"
            yield f"{route.method} {route.path} by {sender.name}: {expected}, got {answer.status_code}"


def borrowed(client: LightClient, staged: Stage, route: Route) -> Iterator[str]:
    """Ids of one organization in the path of another, by its admin: each belongs to one owner only."""
    if not (of_organization(route) and names_by_id(route)):
        return
    for sender in filter(partial(is_for, route), staged.admins_elsewhere):
        answer = client.request(**request(route, staged, sender, "club")._asdict())
        if answer.status_code != 404:
            yield f"{route.method} {route.path} by {sender.name} of club: got {answer.status_code}"


def complaints(client: LightClient, staged: Stage, route: Route) -> Iterator[str]:
    if route.path.endswith(("/test", "/replay/{delivery}")):
        # These wait for a receiver.
        return
    for sender in filter(partial(is_for, route), staged.owners):
        answer = client.request(**request(route, staged, sender)._asdict())
        if answer.status_code == 400 and "is not gated" in answer.text:
            # No repo here has a gate, which is checked after the body.
            continue
        # A form that is shown again passed the authorization.
        malformed = (400, 405, 413, 415) if route.surface is Surface.PAGE else (400, 405, 413, 415, 422)
        if answer.status_code in malformed or not is_answered(answer.status_code):
            yield f"{route.method} {route.path}: {answer.status_code} {answer.text[:200]}"


def routes_of(hub: RunningHub) -> list[Route]:
    """All routes that are not public."""

    async def work(opened: Hub) -> list[Route]:
        return [route for route in build_app(opened).table.routes if route.action is not Action.HUB_PUBLIC]

    return hub.call(work)


def is_for(route: Route, sender: Sender) -> bool:
    """Pages accept sessions, all else accepts tokens (O61); files accept either. The storage API accepts only tokens of
    its own, which carry the permissions of those here (`tests/attacks/test_o78_storage_tokens.py`).
    """
    if route.surface is Surface.STORAGE:
        return False
    by_either = route.surface is Surface.FILE and route.method == "GET"
    return by_either or sender.is_browser == (route.surface is Surface.PAGE)


def may_be_sent(route: Route, sender: Sender) -> bool:
    """Requests that the policy allows are not sent if they would change something; ids of others are tried."""
    return route.method == "GET" or (not sender.is_owners and (route.action.rule.read or names_anothers(route)))


def is_expected(route: Route, sender: Sender, said: Decision, answer: Answer) -> bool:
    status = answer.status_code
    if not sender.works:
        return status == 401
    if said.allowed:
        return status == 404 if names_anothers(route) and not sender.is_owners else is_answered(status)
    refusal = said.error()
    if route.surface is not Surface.PAGE:
        return status == refusal.status
    if refusal.code == "RepoNotFound":
        return status == 404
    if refusal.status == 401 and route.method == "GET":
        return status == 303 and answer.headers["location"].startswith("/login")
    return status == refusal.status


def is_answered(status: int) -> bool:
    """501 is the answer for git-lfs locks, which this hub does not have."""
    return status < 500 or status == 501


def ends_something(route: Route) -> int:
    """Requests that delete what others need are last, the largest at the very end."""
    for rank, words in ((3, ("settings/delete",)), (2, ("rename", "move", "repos/delete"))):
        if any(word in route.path for word in words):
            return rank
    return int(route.method == "DELETE" or any(word in route.path for word in ("delete", "revoke", "/end", "leave")))


def contents(hub: RunningHub) -> dict[str, list[str]]:
    """Everything that is stored."""

    async def work(opened: Hub) -> dict[str, list[str]]:
        # A stranger's announced uploads are charged to the stranger only.
        tables = sorted(set(await opened.db.tables()) - {"guest_bytes"})

        async def unit(tx: Tx) -> dict[str, list[str]]:
            rows = {table: await tx.all(f"SELECT {_COLUMNS.get(table, '*')} FROM {table}") for table in tables}
            return {table: sorted(str(tuple(row)) for row in found) for table, found in rows.items()}

        return await opened.db.read_long(unit)

    return hub.call(work)
