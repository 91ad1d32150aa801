"""`/v1`, `/api/jobs` and `/api/scheduled-jobs`: forwarded to the services that the operator configured.

The whole path is appended to the base address of the service. A request that names its namespace in the path is
forwarded with the account's current name there, so that the path never contradicts the signed identity.
"""

import re
from urllib.parse import unquote

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of, share_key_of
from hubgate.server.access.policy import decide
from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.guard import Guard
from hubgate.server.edge.routes import MIB, Endpoint, Locator, Route
from hubgate.server.errors import BadRequest, NotImplementedHere
from hubgate.server.gateway.connection import RequestHead
from hubgate.server.gateway.context import Gateway
from hubgate.server.gateway.headers import request_headers
from hubgate.server.gateway.signed_identity import identity_claims
from hubgate.server.gateway.upstream import Upstream
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.headers import ANY_HEADERS
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.web.gateway.namespaces import Namespace, as_resource, namespace_in_header, namespace_in_path
from hubgate.server.web.gateway.response import ForwardedResponse

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
LARGEST_BODY = 1024 * MIB
# For the first bytes; a large body gets more time (http/intake.py).
BODY_SECONDS = 120.0

_HARDWARE = "/api/jobs/hardware"
_ANSWERS = {
    200: ("The answer of the service, with its status and body.", None),
    501: ("The operator of this hub has not configured the service.", None),
    502: ("The service is not reachable, or its response is invalid.", None),
    504: ("The service does not respond.", None),
}
_PRINTABLE = re.compile(rb"[!-~]*\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Most services decode a path once; a path that was encoded more often than this hides something.
_DEEPEST_ENCODING = 3


def routes(gateway: Gateway, accounts: Accounts, guard: Guard) -> list[Route]:
    inference = _Service(gateway, guard, gateway.inference, "inference-api", "HUBGATE_INFERENCE_UPSTREAM")
    jobs = _Service(gateway, guard, gateway.jobs, "jobs", "HUBGATE_JOBS_UPSTREAM")
    in_header = namespace_in_header(accounts)
    found = [
        inference.route(method, "/v1/{rest:path}", Action.INFERENCE_USE, in_header, "Send a request for inference")
        for method in METHODS
    ]
    found.append(jobs.route("GET", _HARDWARE, Action.JOBS_READ, in_header, "The hardware that jobs can run on"))
    for kind in ("jobs", "scheduled-jobs"):
        for end, thing in (("", f"the {kind} of a namespace"), ("/{rest:path}", f"one of the {kind} of a namespace")):
            path = f"/api/{kind}/{{name}}{end}"
            for method in METHODS:
                action, verb = (Action.JOBS_READ, "Read") if method == "GET" else (Action.JOBS_RUN, "Change")
                found.append(jobs.route(method, path, action, namespace_in_path(accounts, path), f"{verb} {thing}"))
    return found


class _Service(Struct, frozen=True):
    gateway: Gateway
    guard: Guard
    upstream: Upstream | None
    scope: str
    setting: str

    def route(self, method: str, path: str, action: Action, locator: Locator[Namespace], summary: str) -> Route:
        async def forward(request: HubRequest, namespace: Namespace) -> ASGIApp:
            if self.upstream is None:
                raise NotImplementedHere(
                    f"This hub has no service for {self.scope}: its operator has not set {self.setting}."
                )
            return self._response(request, self.upstream, path, action, namespace)

        return Route(
            method,
            path,
            Endpoint(action, locator, forward),
            Surface.API,
            summary,
            answers=_ANSWERS,
            body_cap=LARGEST_BODY,
            body_seconds=BODY_SECONDS,
            streams=True,
            request_headers=ANY_HEADERS,
        )

    def _response(
        self, request: HubRequest, upstream: Upstream, path: str, action: Action, namespace: Namespace
    ) -> ForwardedResponse:
        gateway, target, user = self.gateway, _target(request, path, namespace), caller_of(request).user

        async def signed_head() -> RequestHead:
            claims = identity_claims(gateway.base_url, upstream, user, namespace, self.scope, gateway.clock())
            headers = [
                *request_headers(request.headers.raw),
                (b"authorization", f"Bearer {await gateway.sign(claims)}".encode()),
                (b"x-request-id", request.request_id.encode()),
            ]
            return RequestHead(request.method, target, headers, _body_length(request))

        async def check_again() -> None:
            caller = await self.guard.reload_caller(request)
            decide(caller.identity, action, as_resource(namespace)).enforce()

        return ForwardedResponse(
            gateway,
            upstream,
            gateway.slots.acquire(share_key_of(request)),
            signed_head,
            request.stream(),
            check_again,
        )


def _target(request: HubRequest, path: str, namespace: Namespace) -> bytes:
    """The path and query of the forwarded request, with the namespace's current name."""
    raw_path, query = request.scope["raw_path"], request.scope["query_string"]
    if not _PRINTABLE.match(raw_path + query):
        raise BadRequest("Percent-encode the address.")
    segments = raw_path.decode("ascii").split("/")
    if _is_ambiguous("/".join(segments)):
        # A service that resolves dot segments would leave the namespace that was checked.
        raise BadRequest("The address contains a . or .. segment or a control character.")
    if "{name}" in path:
        segments[path.split("/").index("{name}")] = namespace.name
    target = "/".join(segments).encode()
    return target + b"?" + query if query else target


def _is_ambiguous(path: str) -> bool:
    """Whether a service could find a dot segment in the path. Some ignore what follows a semicolon or accept a
    backslash as a slash; some decode the path and parse it again, which ends it at ? or # and ignores tabs.
    """
    for _ in range(_DEEPEST_ENCODING):
        path = unquote(path)
    if "%2e" in path.lower() or _CONTROL.search(path):
        return True
    return any(re.split("[;?#]", part)[0] in (".", "..") for part in re.split(r"[/\\]", path))


def _body_length(request: HubRequest) -> int | None:
    """The length of the body; None if the client sends it in chunks."""
    return None if "transfer-encoding" in request.headers else int(request.headers.get("content-length", "0"))
