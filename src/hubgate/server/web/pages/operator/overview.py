"""`/operator`: what waits for the operator, and the state of deliveries, disk, database, keys and accounts."""

import asyncio

from hubgate.server.accounts import operator_actions
from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import Route
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.git.threads import in_read_thread
from hubgate.server.jobs.heartbeats import Heartbeats
from hubgate.server.oauth.keys.model import KeyState, state_of
from hubgate.server.oauth.operator_requests import decision
from hubgate.server.storage.disk_usage import measure
from hubgate.server.web.pages.operator.frame import OVERVIEW, OperatorPages, operator_route
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.insight.overview import read_overview

# Requests, failing hosts, and parts of the data folder that the overview lists.
_REQUESTS = 5
_HOSTS = 10
_PARTS = 5


def routes(frame: OperatorPages, accounts: Accounts, webhooks: Webhooks, heartbeats: Heartbeats) -> list[Route]:
    settings, keys = frame.pages.settings, frame.oauth.keys

    async def show(request: HubRequest) -> Response:
        # Measuring the disk may take a second, in which the other parts are read.
        disk = asyncio.ensure_future(in_read_thread(measure, settings.data_dir))
        try:
            counts = await operator_actions.count_accounts(accounts)
            requests = await decision.list_all(frame.oauth)
            deliveries = await read_overview(webhooks.db, webhooks.clock, heartbeats)
            database = await accounts.db.facts()
            listed, now = await keys.list_all(), accounts.clock()
            return await frame.page(
                request,
                "overview.html",
                OVERVIEW,
                counts=counts,
                now=now,
                pending=requests.pending[:_REQUESTS],
                deliveries=deliveries,
                hosts_shown=_HOSTS,
                database=database,
                # Newest first. Retired and revoked keys are in the list of the command line.
                keys=[(key, state) for key in reversed(listed) if (state := state_of(key, listed, now)) in _SHOWN],
                disk=await disk,
                parts_shown=_PARTS,
                data_dir=settings.data_dir.absolute(),
            )
        finally:
            disk.cancel()

    return [operator_route("GET", OVERVIEW, show, "Overview of the hub")]


_SHOWN = (KeyState.WAITING, KeyState.SIGNING, KeyState.RETIRING)
