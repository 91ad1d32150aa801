"""A small service for jobs, as an operator would put behind the gateway. It trusts the signed identity only."""

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.bed.upstream import UpstreamRequest, verified_claims

CREATED = "2026-11-17T10:00:00.000Z"
HARDWARE = {
    "name": "cpu-basic",
    "prettyName": "CPU Basic",
    "cpu": "2 vCPU",
    "ram": "16 GB",
    "accelerator": None,
    "unitCostMicroUSD": 167,
    "unitCostUSD": 0.000167,
    "unitLabel": "minute",
}


@dataclass
class JobsService:
    hub_url: str = ""
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    schedules: dict[str, dict[str, Any]] = field(default_factory=dict)

    def answer(self, request: UpstreamRequest) -> None:
        claims = verified_claims(self.hub_url, request.token)
        assert claims["scope"] == "jobs"
        address = urlsplit(request.path)
        kind, namespace, *rest = address.path.removeprefix("/api/").split("/")
        given = json.loads(request.body() or b"{}")
        if (kind, namespace) == ("jobs", "hardware"):
            request.reply([HARDWARE])
            return
        assert namespace == claims["namespace"]
        things = self.jobs if kind == "jobs" else self.schedules
        if not rest:
            self._list_or_create(request, things, claims, given, dict(parse_qsl(address.query)))
        elif rest[0] not in things:
            request.reply({"error": "Job not found"}, 404)
        elif rest[1:] == ["logs"]:
            _send_logs(request)
        else:
            request.reply(self._changed(request.method, things, claims, given, rest))

    def _list_or_create(
        self,
        request: UpstreamRequest,
        things: dict[str, dict[str, Any]],
        claims: dict[str, Any],
        given: dict[str, Any],
        query: dict[str, str],
    ) -> None:
        if request.method == "POST":
            request.reply(self._create(things, claims, given))
            return
        found = list(things.values())
        if "cursor" not in query and len(found) > 1:
            # Links have the address by which the service is known to the hub.
            following = f'<http://{request.header("host")}{urlsplit(request.path).path}?cursor=1>; rel="next"'
            request.reply(found[:1], 200, ("link", following))
        else:
            request.reply(found[1:] if "cursor" in query else found)

    def _create(
        self, things: dict[str, dict[str, Any]], claims: dict[str, Any], given: dict[str, Any]
    ) -> dict[str, Any]:
        owner = {"id": claims["namespace_id"], "name": claims["namespace"], "type": claims["namespace_type"]}
        created = {"id": f"{len(things) + 1:024x}", "createdAt": CREATED, "owner": owner}
        if things is self.jobs:
            initiator = {"type": "user", "id": claims["sub"], "name": claims["preferred_username"]}
            created |= {**given, "status": {"stage": "RUNNING"}, "initiator": initiator}
        else:
            created |= {**given, "suspend": False, "status": {}}
        things[created["id"]] = created
        return created

    def _changed(
        self,
        method: str,
        things: dict[str, dict[str, Any]],
        claims: dict[str, Any],
        given: dict[str, Any],
        rest: list[str],
    ) -> dict[str, Any]:
        thing = things[rest[0]]
        match method, *rest[1:]:
            case "POST", "cancel":
                thing["status"] = {"stage": "CANCELED"}
            case "PUT", "labels":
                thing["labels"] = given["labels"]
            case "POST", ("suspend" | "resume") as verb:
                thing["suspend"] = verb == "suspend"
            case "POST", "schedule":
                thing["schedule"] = given["schedule"]
            case "POST", "run":
                return self._create(self.jobs, claims, thing["jobSpec"])
            case "POST", "duplicate":
                copied = {name: thing.get(name) for name in ("dockerImage", "command", "flavor", "labels")}
                return self._create(self.jobs, claims, copied)
            case ["DELETE"]:
                del things[rest[0]]
        return thing


def _send_logs(request: UpstreamRequest) -> None:
    request.start(200, ("content-type", "text/event-stream"), ("transfer-encoding", "chunked"))
    for line in ("===== Job started", "hello", "world"):
        event = {"data": line, "timestamp": CREATED}
        request.write_chunk(f": keep-alive\n\ndata: {json.dumps(event)}\n\n".encode())
    request.write(b"0\r\n\r\n")
