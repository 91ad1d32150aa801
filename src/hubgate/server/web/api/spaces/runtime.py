"""A Space that runs: its state, restart, pause, sleep time and hardware."""

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of
from hubgate.server.edge.routes import KIB, Query, Route, public
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos.model import Repo
from hubgate.server.spaces import management
from hubgate.server.spaces.context import Spaces
from hubgate.server.spaces.model import HARDWARE
from hubgate.server.web.api.repos import queries
from hubgate.server.web.api.spaces.wire import Runtime, runtime_of, space_route

_FACTORY = Query("factory", "Also install the requirements again, without a cache.", {"type": "boolean"})
_ANSWERS = {200: ("The state of the Space.", Runtime)}
_NOT_RUN = {**_ANSWERS, 400: ("The Space is stored, not run.", None)}


class SleepTime(msgspec.Struct):
    """Seconds without a request after which the Space sleeps; -1, for never, is the operator's decision."""

    seconds: int


class RequestHardware(msgspec.Struct, rename="camel"):
    flavor: str
    sleep_time_seconds: int | None = None


class HardwareFlavor(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    pretty_name: str
    cpu: str
    ram: str
    ephemeral_storage: str
    accelerator: None = None
    unit_cost_micro_usd: int = msgspec.field(default=0, name="unitCostMicroUSD")
    unit_cost_usd: int = msgspec.field(default=0, name="unitCostUSD")
    unit_label: str = "minute"


def routes(repos: Repos, spaces: Spaces, hardware: HardwareFlavor) -> list[Route]:
    async def answer(repo: Repo) -> JsonResponse:
        return JsonResponse(runtime_of(await management.state(spaces, repo)))

    async def show(_: HubRequest, repo: Repo) -> JsonResponse:
        return await answer(repo)

    async def restart(request: HubRequest, repo: Repo) -> JsonResponse:
        factory = queries.flag(request.query_fields(), "factory")
        await management.restart(spaces, repo, actor_of(request), factory=factory)
        return await answer(repo)

    async def pause(request: HubRequest, repo: Repo) -> JsonResponse:
        await management.pause(spaces, repo, actor_of(request))
        return await answer(repo)

    async def set_sleep_time(request: HubRequest, repo: Repo) -> JsonResponse:
        body = await request.read_json(SleepTime)
        await management.set_sleep_time(spaces, repo, body.seconds, actor_of(request))
        return await answer(repo)

    async def set_hardware(request: HubRequest, repo: Repo) -> JsonResponse:
        body = await request.read_json(RequestHardware)
        await management.set_hardware(spaces, repo, body.flavor, body.sleep_time_seconds, actor_of(request))
        return await answer(repo)

    async def list_hardware(_: HubRequest) -> JsonResponse:
        return JsonResponse([hardware])

    see, configure, small = Action.REPO_SEE, Action.REPO_CONFIGURE, {"body_cap": 4 * KIB}
    return [
        Route(
            "GET",
            "/api/spaces/hardware",
            public(list_hardware),
            Surface.API,
            f"The hardware of Spaces: {HARDWARE}",
            answers={200: ("One flavor.", list[HardwareFlavor])},
        ),
        space_route(repos, "GET", "/runtime", see, show, "The state of a Space", _ANSWERS),
        space_route(
            repos, "POST", "/restart", configure, restart, "Restart a Space", _NOT_RUN, query=(_FACTORY,), **small
        ),
        space_route(repos, "POST", "/pause", configure, pause, "Pause a Space", _NOT_RUN, **small),
        space_route(
            repos,
            "POST",
            "/sleeptime",
            configure,
            set_sleep_time,
            "Set when a Space sleeps",
            {**_NOT_RUN, 422: ("Longer than 48 hours, or shorter than a minute.", None)},
            body=SleepTime,
            **small,
        ),
        space_route(
            repos,
            "POST",
            "/hardware",
            configure,
            set_hardware,
            "Request hardware for a Space",
            {**_ANSWERS, 400: ("The hub does not have this hardware, or the Space is stored, not run.", None)},
            body=RequestHardware,
            **small,
        ),
    ]


def flavor(cpu_percent: int, memory_bytes: int, disk_bytes: int) -> HardwareFlavor:
    """The only hardware, with the operator's limits."""
    return HardwareFlavor(HARDWARE, "CPU basic", f"{cpu_percent / 100:g} vCPU", _size(memory_bytes), _size(disk_bytes))


def _size(count: int) -> str:
    return f"{count / (1 << 30):g} GB"
